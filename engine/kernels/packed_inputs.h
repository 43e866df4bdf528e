// Inputs of packed products: rows quantised to integers in groups of 32.
//
// As in ggml, an input is rounded to eight bits. Layers that are `precise` get fifteen: BYTE_BASE · a first byte + a
// second one, each multiplied with the weights.

#pragma once

#include <cstdint>
#include <cstring>

#include "packed_layout.h"
#include "vectors.h"

namespace {

constexpr int INPUT_NUMBERS = 5;  // floats stored for a group of a row
constexpr int BYTE_BASE = 254;    // of the two bytes of a precise input

// Without an instruction that multiplies bytes and adds four products, products of two are added in sixteen bits.
// SIGNED_CODES: the weights' codes are made signed by subtracting their middle, which leaves room for more products.
#if defined(__AVX2__) && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
#define SIGNED_CODES true
#else
#define SIGNED_CODES false
#endif
constexpr int middle(int bits) {
    return SIGNED_CODES && bits > 4 ? 1 << (bits - 1) : 0;
}  // with four bits it gains nothing

// Whether add_chunk expects the codes of several rows as 16-bit words: those of inputs 0 and 2 of each step, then those
// of inputs 1 and 3. Otherwise SIGNED_CODES expects several rows' bytes unsigned, with 128 added.
inline bool as_words(int bits, int64_t rows) { return SIGNED_CODES && rows > 1 && bits == 8; }

// Quantised rows. An input is code · scale.
struct QuantisedInputs {
    const int8_t *codes;  // [groups][rows][bytes of a code][GROUP]
    // [groups][rows][INPUT_NUMBERS]: the scale; scale · sum and sum of the codes, or, with
    // two scales a group, of each half
    const float *numbers;
    int64_t rows;
};

// Converts integral floats [GROUP] within ±127 to bytes.
inline void to_bytes(const vf *whole, int8_t *to) {
#if defined(__AVX512F__)
    for (int i = 0; i < GROUP / LANES; i++)
        _mm_storeu_si128((__m128i *)(to + i * LANES), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32((__m512)whole[i])));
#elif defined(__AVX2__)
    const auto pair = [&](int i) {
        return _mm256_packs_epi32(_mm256_cvtps_epi32((__m256)whole[i]), _mm256_cvtps_epi32((__m256)whole[i + 1]));
    };
    const __m256i mixed = _mm256_packs_epi16(pair(0), pair(2));  // AVX2 packs the halves of a register separately
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
#else
    for (int i = 0; i < GROUP; i++) to[i] = int8_t(whole[i / LANES][i % LANES]);
#endif
}

// Stores a group's codes, as words if `wide`.
template <int BYTES>
inline void store_codes(const int8_t (*bytes)[GROUP], bool wide, int64_t rows, int8_t *to) {
    typedef uint8_t line __attribute__((vector_size(GROUP)));
    typedef int16_t words __attribute__((vector_size(GROUP)));
    if (wide) {
        words even{}, odd{};
        for (int byte = 0; byte < BYTES; byte++) {
            const words both = load<words>(bytes[byte]);
            even = even * BYTE_BASE + (both << 8 >> 8);
            odd = odd * BYTE_BASE + (both >> 8);
        }
        store(to, even);
        store(to + GROUP, odd);
    } else {
        const uint8_t more = SIGNED_CODES && rows > 1 ? 128 : 0;
        for (int byte = 0; byte < BYTES; byte++) store(to + byte * GROUP, load<line>(bytes[byte]) + more);
    }
}

// Quantises one row, which becomes row number `row` of `rows`.
template <int BYTES>
void quantise_row(const bf16 *x, const int32_t *order, bool fine, bool wide, int64_t inputs, int64_t rows, int64_t row,
                  int8_t *codes, float *numbers) {
    constexpr int VECTORS = GROUP / LANES;
    const vf magic = splat(12582912.f);  // adding and subtracting it rounds to an integer
    for (int64_t g = 0; g * GROUP < inputs; g++) {
        alignas(64) bf16 gathered[GROUP];
        alignas(64) int8_t bytes[BYTES][GROUP];
        const bf16 *from = x + g * GROUP;
        if (order) {
            for (int i = 0; i < GROUP; i++) gathered[i] = x[order[g * GROUP + i]];
            from = gathered;
        }
        vf value[VECTORS], most_of{}, low{}, high{};
        for (int i = 0; i < VECTORS; i++) {
            value[i] = (vf)(__builtin_convertvector(load<vh>(from + i * LANES), vu) << 16);
            const vf size = (vf)((vu)value[i] & 0x7fffffffu);
            most_of = size > most_of ? size : most_of;
        }
        const float most = max_lane(most_of), unit = most / 127.f;
        float inverse = most > 0 ? 127.f / most : 0.f, factor = BYTES == 2 ? BYTE_BASE : 1;
        for (int byte = 0; byte < BYTES; byte++, inverse *= BYTE_BASE, factor = 1) {
            vf whole[VECTORS];
            for (int i = 0; i < VECTORS; i++) {
                whole[i] = (value[i] * inverse + magic) - magic;
                value[i] -= whole[i] * unit;
                (i < VECTORS / 2 ? low : high) += whole[i] * factor;
            }
            to_bytes(whole, bytes[byte]);
        }
        store_codes<BYTES>(bytes, wide, rows, codes + (g * rows + row) * (wide ? 2 : BYTES) * GROUP);
        const float scale = BYTES == 2 ? unit / BYTE_BASE : unit;
        float *number = numbers + (g * rows + row) * INPUT_NUMBERS;
        number[3] = sum_lanes(fine ? low : low + high);
        number[4] = fine ? sum_lanes(high) : 0.f;
        number[0] = scale + 0.f * (number[3] + number[4]);  // NaN if any input is
        for (int half = 0; half < 2; half++) number[1 + half] = scale * number[3 + half];
    }
}

}  // namespace
