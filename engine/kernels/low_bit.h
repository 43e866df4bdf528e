// Quantises linear layers for drafts: signed codes in groups of 32 inputs that share a float16 scale.
//
// For a group w, each candidate step gives codes q = round(w / step), clamped to the range of codes. With them the best
// scale is Σwq / Σq², which leaves the squared error Σw² − (Σwq)² / Σq². The candidate with the least error is taken.
// engine/model/low_bit.py does the same with torch. Called by NativeLinears.lower.

#pragma once

#include <algorithm>
#include <cstdint>

#include "packed_layout.h"
#include "structures.h"
#include "vectors.h"

namespace {

// Candidate steps, by where they put a group's largest weight: this many codes beyond the last one. Measured on
// Qwen2.5-Coder-0.5B with four bits: these leave 1 % more error than forty candidates and take 0.65 of the time of
// eight; candidate 0 alone leaves 20 % more.
constexpr float BEYOND[] = {-1.f, -.5f, 0.f, .5f, 1.f};

// Stores a vector as float16.
inline void store_halves(uint8_t *to, vf v) {
#if defined(__AVX512F__)
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__) && defined(__AVX2__)
    _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
#else
    for (int i = 0; i < LANES; i++) {
        float f = v[i];
        uint32_t u;
        std::memcpy(&u, &f, 4);
        if ((u >> 23 & 255) > 112) u += 0xfff + (u >> 13 & 1);  // subnormal results are truncated
        std::memcpy(&f, &u, 4);
        const uint16_t half = exact_half(f);
        std::memcpy(to + 2 * i, &half, 2);
    }
#endif
}

// Quantises weights [GROUP] of a vector of outputs to codes, offset to be unsigned, and scales.
// twin: engine/model/low_bit.py, lowered
inline void quantise_group(const vf *w, int bits, vi *codes, vf &scale) {
    const float half = float(1 << (bits - 1));
    const vf magic = splat(12582912.f);  // adding and subtracting it rounds to an integer
    vf extreme{}, most{};
    for (int k = 0; k < GROUP; k++) {
        const vf size = (vf)((vu)w[k] & 0x7fffffffu);
        extreme = size > most ? w[k] : extreme;
        most = size > most ? size : most;
    }
    const vf usual = most > 0.f ? extreme : splat(1.f);
    vf best = splat(-1.f), chosen{};
    scale = vf{};
    const auto code = [&](vf weight, vf inverse) {
        return min_of(max_of((weight * inverse + magic) - magic, splat(-half)), splat(half - 1));
    };
    for (const float beyond : BEYOND) {
        const vf inverse = -(half + beyond) / usual;
        vf along{}, square{};
        for (int k = 0; k < GROUP; k++) {
            const vf q = code(w[k], inverse);
            along += w[k] * q;
            square += q * q;
        }
        const vf gain = square > 0.f ? along * along / square : vf{};
        chosen = gain > best ? inverse : chosen;
        scale = gain > best ? (square > 0.f ? along / square : vf{}) : scale;
        best = gain > best ? gain : best;
    }
    for (int k = 0; k < GROUP; k++) codes[k] = __builtin_convertvector(code(w[k], chosen), vi) + (1 << (bits - 1));
}

// Reads a panel of a layer's weights, 32 inputs at a time, as floats [GROUP][PANEL].
class PanelReader {
public:
    // `part`: null if the weights are bf16.
    PanelReader(const Linear &l, const PackedPart *part, int panel)
        : l(l), part(part), format(part ? part->format : PackedFormat{}) {
        w = part ? part->w + panel * panel_bytes(format, l.in)
                 : reinterpret_cast<const uint8_t *>(l.w + int64_t(panel) * PANEL * l.in);
    }
    void read(int64_t from, float (*to)[PANEL]) {
        if (!part) {
            const bf16 *panel = reinterpret_cast<const bf16 *>(w);
            for (int k = 0; k < GROUP; k += 2)
                for (int j = 0; j < PANEL; j += LANES) {
                    const int64_t pair = j / STRIPE * int64_t(l.in) / 2 + (from + k) / 2;
                    const vu both = load<vu>(panel + (pair * STRIPE + j % STRIPE) * 2);
                    store(to[k] + j, (vf)(both << 16));
                    store(to[k + 1] + j, (vf)(both & 0xffff0000u));
                }
            return;
        }
        if (from % CHUNK == 0) open_chunk(int(std::min<int64_t>(CHUNK, l.in - from)));
        for (int k = 0; k < GROUP; k++, at++) {
            const int shared = at / std::min(format.group, CHUNK) * PANEL;
            for (int j = 0; j < PANEL; j += LANES) {
                vf value;
                if (format.type == FP8) value = load_e4m3(codes + k * PANEL + j);
                else
                    for (int i = 0; i < LANES; i++)
                        value[i] = float(codes[(k / 4 * PANEL + j + i) * 4 + k % 4] - format.offset);
                value *= load<vf>(scales + shared + j);
                if (format.minimum) value += load<vf>(minima + shared + j);
                store(to[k] + j, value);
            }
        }
        codes += code_bytes(8);
        if (at == count) w = codes;
    }
    static bool reads(const PackedPart &part) { return part.format.bits == 8; }

private:
    void open_chunk(int inputs) {
        const int bytes = scale_bytes(format, inputs), groups = groups_in(format, inputs);
        read_scales<int8_t>(format, groups, 1.f, w, scales);
        if (format.minimum) read_scales<uint8_t>(format, groups, -1.f, w + bytes / 2, minima);
        codes = w + bytes;
        count = inputs;
        at = 0;
    }

    const Linear &l;
    const PackedPart *part;
    PackedFormat format;
    const uint8_t *w, *codes = nullptr;
    int count = 0, at = 0;  // inputs of the chunk, and how many have been read
    alignas(64) float scales[CHUNK / MIN_GROUP * PANEL], minima[CHUNK / MIN_GROUP * PANEL];
};

// Quantises one panel to codes of `bits` bits.
inline void quantise_panel(PanelReader &&reader, int64_t inputs, int bits, uint8_t *to) {
    alignas(64) float weights[GROUP][PANEL];
    for (int64_t from = 0; from < inputs; from += CHUNK) {
        const int count = int(std::min<int64_t>(CHUNK, inputs - from));
        uint8_t *numbers = to;
        to += count / GROUP * 2 * PANEL;
        for (int at = 0; at < count; at += GROUP) {
            reader.read(from + at, weights);
            for (int first = 0; first < PANEL; first += LANES) {
                vf w[GROUP], scale;
                vi whole[GROUP];
                for (int k = 0; k < GROUP; k++) w[k] = load<vf>(weights[k] + first);
                quantise_group(w, bits, whole, scale);
                store_halves(numbers, scale);
                numbers += 2 * LANES;
                vu words[STEPS];
                for (int t = 0; t < STEPS; t++) {
                    const vi *four = whole + 4 * t;
                    words[t] = (vu)(four[0] | four[1] << 8 | four[2] << 16 | four[3] << 24);
                }
                pack_words(bits, words, [&](int plane, vu word) { store(to + (plane * PANEL + first) * 4, word); });
            }
            to += code_bytes(bits);
        }
    }
}

}  // namespace
