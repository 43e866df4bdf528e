// Products of rows with a linear layer whose weights stay packed: codes of 4, 5, 6 or 8 bits in groups, or fp8.
//
// packed_layout.h describes panels, packed_inputs.h how inputs are rounded (fp8 weights take bf16 inputs), and
// packed_kernels.h how both are multiplied.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "buffer.h"
#include "packed_inputs.h"
#include "packed_kernels.h"
#include "packed_layout.h"
#include "structures.h"
#include "thread_pool.h"
#include "vectors.h"

namespace {

constexpr int MIN_PARALLEL_INPUTS = 16384;  // loops over fewer run on one thread
constexpr int MAX_PACKED_ROWS = 64;  // rows that share an unpacked group: their sums fit into the first-level cache
constexpr int MAX_SHARE_BYTES = 128 << 10;  // most weights that a thread claims at a time

// Quantised inputs of all rows, for parts with the same order of inputs.
struct InputBuffers {
    QuantisedInputs inputs{};
    Buffer<int8_t> codes;
    Buffer<float> numbers;

    void fill(ThreadPool &pool, const int32_t *order, bool fine, bool wide, int bytes, const bf16 *x, int64_t in,
              int rows) {
        inputs = {codes.get(in * rows * (wide ? 2 : bytes)), numbers.get(in / GROUP * rows * INPUT_NUMBERS), rows};
        const auto quantise = bytes == 2 ? quantise_row<2> : quantise_row<1>;
        const int share = rows * in <= MIN_PARALLEL_INPUTS ? rows : std::max(1, rows / (8 * pool.size));
        pool.parallel_for(rows, share, [&](int first, int last) {
            for (int r = first; r < last; r++)
                quantise(x + r * in, order, fine, wide, in, rows, r, codes.data, numbers.data);
        });
    }
};

// Sizes of a chunk. All chunks of a panel are alike except the last one, which may be shorter.
struct ChunkLayout {
    ChunkLayout() = default;
    ChunkLayout(const PackedFormat &format, int count)
        : groups(groups_in(format, count)), fours(count / GROUP), numbers(scale_bytes(format, count)),
          bytes(numbers + fours * code_bytes(format.bits)) {}
    int groups, fours, numbers, bytes;  // scales; groups of inputs; bytes of the scales, and of the chunk
};

// Multiplies with one part. Prepared once for all panels, because its divisions take longer than a group's products.
struct PackedProduct {
    PackedProduct() = default;
    PackedProduct(const PackedPart &part, int64_t in, int bytes)
        : part(&part), in(in), bytes(bytes), whole(part.format, CHUNK),
          rest(part.format, std::max(GROUP, int(in % CHUNK))), panel(panel_bytes(part.format, in)),
          kernels(chunk_kernels(part.format, bytes == 2)),
          offset_shift(float(middle(part.format.bits) - part.format.offset)) {
        while (GROUP << shift < std::min(part.format.group, CHUNK)) shift++;
    }

    // Multiplies rows row … row + rows - 1 with panel `index`.
    void multiply(int index, const QuantisedInputs &x, const bf16 *raw, int64_t row, int rows,
                  float (*out)[PANEL]) const {
        const uint8_t *w = part->w + index * panel;
        std::memset(out, 0, rows * sizeof out[0]);
        for (int64_t from = 0; from < in; from += CHUNK) {
            const ChunkLayout &chunk = from + CHUNK <= in ? whole : rest;
            add(chunk, w, from, x, raw, row, rows, out);
            w += chunk.bytes;
        }
    }

    const PackedPart *part = nullptr;
    int64_t in = 0;

private:
    void add(const ChunkLayout &chunk, const uint8_t *w, int64_t from, const QuantisedInputs &x, const bf16 *raw,
             int64_t row, int rows, float (*out)[PANEL]) const {
        const PackedFormat &format = part->format;
        const uint8_t *const codes = w + chunk.numbers, *const lows = format.minimum ? w + chunk.numbers / 2 : nullptr;
        const PrefetchCursor ahead{w + PREFETCH_BYTES, w + PREFETCH_BYTES, chunk.bytes / chunk.fours};
        const int64_t at = from / GROUP * x.rows + row;
        const QuantisedInputs here{x.codes + at * (as_words(format.bits, x.rows) ? 2 : bytes) * GROUP,
                                   x.numbers + at * INPUT_NUMBERS, x.rows};
        if (x.rows == 1 && format.type != FP8)
            return kernels.one(codes, w, lows, chunk.fours, shift, offset_shift, here, ahead, out[0]);
        alignas(64) float scales[CHUNK / MIN_GROUP * PANEL], minima[CHUNK / MIN_GROUP * PANEL];
        read_scales<int8_t>(format, chunk.groups, 1.f, w, scales);
        if (format.type == FP8)
            return add_fp8_chunk(codes, scales, chunk.fours, shift, raw + row * in + from, in, rows, ahead, out);
        if (lows) read_scales<uint8_t>(format, chunk.groups, -1.f, lows, minima);
        for (int i = 0; i < chunk.groups * PANEL; i += LANES) {
            const vf shifted = load<vf>(scales + i) * offset_shift;
            store(minima + i, lows ? shifted + load<vf>(minima + i) : shifted);
        }
        kernels.some(codes, scales, minima, chunk.fours, shift, here, rows, ahead, out);
    }

    int bytes = 1;
    ChunkLayout whole, rest;
    int64_t panel = 0;
    ChunkKernels kernels{};
    float offset_shift = 0;
    int shift = 0;
};

constexpr int PARTS = 3;  // most parts of a linear layer: q, k and v
inline InputBuffers *input_buffers() {
    thread_local InputBuffers all[PARTS];
    return all;
}

// Like multiply_linear in products.h.
template <class Write>
void multiply_packed(ThreadPool &pool, const Linear &l, const bf16 *x, int rows, Write write) {
    InputBuffers *prepared = input_buffers();
    const int bytes = l.precise ? 2 : 1, most = MAX_PACKED_ROWS / bytes;
    const QuantisedInputs *inputs[PARTS] = {};
    PackedProduct kernels[PARTS];
    int panels = 0;
    for (int i = 0; i < l.count; i++) {
        const PackedPart &part = l.parts[i];
        const auto alike = [&](const PackedPart &other) {
            return other.format.type != FP8 && other.order == part.order &&
                   (other.format.group < GROUP) == (part.format.group < GROUP) &&
                   as_words(other.format.bits, rows) == as_words(part.format.bits, rows);
        };
        panels += part.panels;
        kernels[i] = PackedProduct(part, l.in, bytes);
        inputs[i] = &prepared[i].inputs;
        if (part.format.type == FP8) continue;
        const PackedPart *same = std::find_if(l.parts, l.parts + i, alike);
        if (same < l.parts + i) inputs[i] = inputs[same - l.parts];
        else
            prepared[i].fill(pool, part.order, part.format.group < GROUP, as_words(part.format.bits, rows), bytes, x,
                             l.in, rows);
    }
    const int chunk = int(std::max<int64_t>(
        1, std::min<int64_t>(MAX_SHARE_BYTES / panel_bytes(l.parts[0].format, l.in), panels / (8 * pool.size))));
    pool.parallel_for(panels, chunk, [&](int first, int last) {
        alignas(64) float out[MAX_PACKED_ROWS][PANEL];
        for (int panel = first; panel < last; panel++) {
            int i = 0, within = panel;
            while (within >= l.parts[i].panels) within -= l.parts[i++].panels;
            for (int row = 0; row < rows; row += most) {
                const int some = std::min(most, rows - row);
                kernels[i].multiply(within, *inputs[i], x, row, some, out);
                for (int r = 0; r < some; r++) write(row + r, panel * PANEL, out[r], PANEL);
            }
        }
    });
}

}  // namespace
