// Products of a chunk of packed weights with quantised inputs, for every width of codes and every instruction set.
//
// The products of a group are integers, exact in any order. They are scaled and added as floats in one fixed order: a
// row's result does not depend on other rows.

#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "packed_inputs.h"
#include "packed_layout.h"
#include "structures.h"
#include "vectors.h"

namespace {

constexpr int PREFETCH_BYTES = 2048;  // 1 to 3 KiB were fastest, 4 KiB a tenth slower

// Products of unsigned codes with signed inputs, four bytes of each at a time.
#if defined(__AVX512BW__)
inline vb splat_four(const int8_t *p) { return (vb)_mm512_set1_epi32(int(load<int32_t>(p))); }
inline vs multiply_pairs(vb codes, vb x) { return (vs)_mm512_maddubs_epi16((__m512i)codes, (__m512i)x); }
inline vi multiply_words(vs a, vs b) { return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b); }
inline vb magnitude(vb w) { return (vb)_mm512_abs_epi8((__m512i)w); }
inline vb signed_by(vb x, vb w) {
    return (vb)_mm512_mask_sub_epi8((__m512i)x, _mm512_movepi8_mask((__m512i)w), _mm512_setzero_si512(), (__m512i)x);
}
#elif defined(__AVX2__)
inline vb splat_four(const int8_t *p) { return (vb)_mm256_set1_epi32(int(load<int32_t>(p))); }
inline vs multiply_pairs(vb codes, vb x) { return (vs)_mm256_maddubs_epi16((__m256i)codes, (__m256i)x); }
inline vi multiply_words(vs a, vs b) { return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b); }
inline vb magnitude(vb w) { return (vb)_mm256_abs_epi8((__m256i)w); }
inline vb signed_by(vb x, vb w) { return (vb)_mm256_sign_epi8((__m256i)x, (__m256i)w); }
#endif
#if defined(__AVX512BW__) || defined(__AVX2__)
inline vi sum_pairs(vs pairs, int factor) { return multiply_words(pairs, vs{} + short(factor)); }
#else
inline vb splat_four(const int8_t *p) { return (vb)(load<uint32_t>(p) - vu{}); }
#endif
#if defined(__AVX512VNNI__)
inline vi add_fours(vi sums, vb codes, vb x) {
    return (vi)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)codes, (__m512i)x);
}
#elif defined(__AVXVNNI__)
inline vi add_fours(vi sums, vb codes, vb x) {
    return (vi)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)codes, (__m256i)x);
}
#endif

// Returns sums + Σ codes · inputs over N steps as floats; fours(byte, t) are the inputs of step t in every lane. The
// unrolling is explicit: left to itself GCC keeps loops, which take twice as long with five bits.
template <int BITS, int BYTES, int N, class Codes, class Fours>
inline vf whole_products(vi sums, Codes codes, Fours fours) {
#pragma GCC unroll 8
    for (int byte = 0; byte < BYTES; byte++) {
        const int factor = byte < BYTES - 1 ? BYTE_BASE : 1;
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
        vi some{};
#pragma GCC unroll 8
        for (int t = 0; t < N; t++) some = add_fours(some, codes(t), fours(byte, t));
        sums += some * factor;
#elif defined(__AVX2__)
        // As many pairs of products fit into sixteen bits: 15·127·2·8, 31·127·2·4, 63·127·2·2 and 128·127·2 do.
        constexpr int PER_SUM = std::min(N, BITS == 4 ? 8 : BITS == 5 ? 4 : BITS == 6 ? 2 : 1);
#pragma GCC unroll 8
        for (int first = 0; first < N; first += PER_SUM) {
            vs chains[2] = {};  // two sums, for one would wait for each addition
#pragma GCC unroll 8
            for (int i = 0; i < PER_SUM; i++) {
                vs &pairs = chains[i % 2];
                const vb code = codes(first + i), four = fours(byte, first + i);
                const vs some =
                    BITS == 8 ? multiply_pairs(magnitude(code), signed_by(four, code)) : multiply_pairs(code, four);
                pairs = i > 1 ? pairs + some : some;
            }
            const vs pairs = PER_SUM > 1 ? chains[0] + chains[1] : chains[0];
            sums += sum_pairs(pairs, factor);
        }
#else
        for (int t = 0; t < N; t++)
            for (int i = 0; i < LANES; i++)
                for (int j = 0; j < 4; j++)
                    sums[i] += factor * int32_t(codes(t)[4 * i + j]) * int8_t(fours(byte, t)[4 * i + j]);
#endif
    }
    return __builtin_convertvector(sums, vf);
}

// Unpacks the codes of step t of a group for a vector of outputs, from output `first` on.
template <int BITS>
inline vb unpack(const uint8_t *w, int first, int t) {
    const auto plane = [&](int p) { return load<vu>(w + p * 4 * PANEL + 4 * first); };
    if constexpr (BITS == 8) return (vb)(plane(t) ^ (SIGNED_CODES ? 0x80808080u : 0u));
    const vu both = plane(t / 2);
    vu code = (t % 2 ? both >> 4 : both) & 0x0f0f0f0fu;
    if constexpr (BITS == 5) {
        const vu high = plane(4);
        code |= (t < 4 ? high << (4 - t) : high >> (t - 4)) & 0x10101010u;
    }
    if constexpr (BITS == 6) {
        const vu high = plane(4 + t / 4);
        code |= (t % 4 < 2 ? high << (4 - 2 * (t % 4)) : high >> (2 * (t % 4) - 4)) & 0x30303030u;
    }
    return (vb)code;
}

// Adds a group's products, scaled, and its minima. TWO_SCALES: each half of the group has a scale and a minimum.
template <bool TWO_SCALES, bool HAS_MINIMUM, class Whole, class Scale, class Minimum>
inline vf add_group(vf sum, Whole whole, Scale scale, Minimum minimum, const float *numbers) {
    constexpr int SCALES_PER_GROUP = TWO_SCALES ? 2 : 1;
    if (HAS_MINIMUM)
        for (int half = 0; half < SCALES_PER_GROUP; half++) sum += minimum(half) * numbers[1 + half];
    for (int half = 0; half < SCALES_PER_GROUP; half++) sum += whole(half) * (scale(half) * numbers[0]);
    return sum;
}

// Prefetches weights PREFETCH_BYTES ahead, an equal share at each group.
struct PrefetchCursor {
    void group() {
        for (due += share; line < due; line += 64) __builtin_prefetch(line, 0, 3);
    }
    const uint8_t *line, *due;
    int share;  // bytes for each group
};

#if SIGNED_CODES
constexpr int VECTORS = PANEL / LANES;
#define ALWAYS_INLINE __attribute__((always_inline))
// Calls f(0), …, f(N - 1) with compile-time constants. In loops that GCC unrolls later it keeps sums in memory.
template <class F, int... I>
ALWAYS_INLINE inline void unroll_indices(std::integer_sequence<int, I...>, F f) {
    (f(std::integral_constant<int, I>()), ...);
}
template <int N, class F>
ALWAYS_INLINE inline void unroll(F f) {
    unroll_indices(std::make_integer_sequence<int, N>(), f);
}

// Adds Σ codes · inputs of a row over N steps to `sums`, for all outputs of the panel.
template <int BITS, int LINES, int FROM, int N>
ALWAYS_INLINE inline void add_products(vi *sums, const vb (*codes)[STEPS][VECTORS], const int8_t *x) {
    // 15·255·2·4, 16·255·2·4 and 32·255·2·2 fit into sixteen bits.
    constexpr int PER_SUM = BITS < 6 ? 4 : BITS == 6 ? 2 : 1;
    unroll<LINES>([&](auto line) ALWAYS_INLINE {
        unroll<N / PER_SUM>([&](auto part) ALWAYS_INLINE {
            constexpr int FIRST = FROM + part * PER_SUM;
            vs pairs[VECTORS];
            unroll<PER_SUM>([&](auto t) ALWAYS_INLINE {
                const vb four = splat_four(x + line * GROUP + 4 * (FIRST + t));
                unroll<VECTORS>([&](auto v) ALWAYS_INLINE {
                    const vb code = codes[BITS == 8 ? line : 0][FIRST + t][v];
                    if constexpr (BITS == 8) {
                        sums[v] += multiply_words((vs)four, (vs)code);
                        asm("" : "+x"(sums[v]));  // or GCC multiplies everything first, adds later, and spills
                    } else {
                        const vs some = multiply_pairs(four, code);
                        pairs[v] = t > 0 ? pairs[v] + some : some;
                        asm("" : "+x"(pairs[v]));
                    }
                });
            });
            if constexpr (BITS < 8)
                unroll<VECTORS>(
                    [&](auto v) ALWAYS_INLINE { sums[v] += sum_pairs(pairs[v], line < LINES - 1 ? BYTE_BASE : 1); });
        });
    });
}

// Adds a chunk's products to `out`. `shift`: 2^shift groups share a scale; TWO_SCALES: a group has two. HAS_MINIMUM:
// add `minima` times the sums of inputs. LINES: bytes of an input, or 2 for words.
//
// Codes are unpacked once for all rows and stay in memory; a step of inputs stays in a register for all outputs.
// Therefore inputs are the unsigned factors here.
template <int BITS, int LINES, bool TWO_SCALES, bool HAS_MINIMUM>
void add_chunk(const uint8_t *w, const float *scales, const float *minima, int groups, int shift, QuantisedInputs x,
               int rows, PrefetchCursor ahead, float (*out)[PANEL]) {
    constexpr int SCALES_PER_GROUP = TWO_SCALES ? 2 : 1, N = STEPS / SCALES_PER_GROUP;
    for (int g = 0; g < groups; g++, w += code_bytes(BITS)) {
        const int at = (TWO_SCALES ? 2 * g : g >> shift) * PANEL;
        const float *scale = scales + at, *minimum = minima + at;
        const float *numbers = x.numbers + g * x.rows * INPUT_NUMBERS;
        const int8_t *q = x.codes + g * x.rows * LINES * GROUP;
        vb codes[BITS == 8 ? 2 : 1][STEPS][VECTORS];
        vi start[2][VECTORS] = {};
        ahead.group();
        for (int v = 0; v < VECTORS; v++)
#pragma GCC unroll 8
            for (int t = 0; t < STEPS; t++) {
                const vb code = unpack<BITS>(w, v * LANES, t);
                if constexpr (BITS == 8) {
                    codes[0][t][v] = (vb)((vs)code << 8 >> 8);
                    codes[1][t][v] = (vb)((vs)code >> 8);
                } else codes[0][t][v] = code - uint8_t(middle(BITS));
            }
        if constexpr (BITS < 8)  // cancel the 128 that unsigned inputs have too much
            for (int t = 0; t < STEPS; t += 4)
                for (int v = 0; v < VECTORS; v++) {
                    const vb four = codes[0][t][v] + codes[0][t + 1][v] + codes[0][t + 2][v] + codes[0][t + 3][v];
                    start[t / N][v] +=
                        sum_pairs(multiply_pairs(vb{} + uint8_t(128), four), LINES == 2 ? -BYTE_BASE - 1 : -1);
                }
        asm("" : "+r"(scale), "+r"(minimum));  // or GCC keeps a separate address for each vector
        for (int r = 0; r < rows; r++, q += LINES * GROUP, numbers += INPUT_NUMBERS) {
            vf sums[VECTORS];
            const float number = numbers[0];
            unroll<SCALES_PER_GROUP>([&](auto half) ALWAYS_INLINE {
                vi whole[VECTORS];
                unroll<VECTORS>([&](auto v) ALWAYS_INLINE { whole[v] = start[half][v]; });
                add_products<BITS, LINES, half * N, N>(whole, codes, q);
                unroll<VECTORS>([&](auto v) ALWAYS_INLINE {
                    if (half == 0) {
                        sums[v] = load<vf>(out[r] + v * LANES);
                        if (HAS_MINIMUM)
                            for (int h = 0; h < SCALES_PER_GROUP; h++)
                                sums[v] += load<vf>(minimum + h * PANEL + v * LANES) * numbers[1 + h];
                    }
                    sums[v] +=
                        __builtin_convertvector(whole[v], vf) * (load<vf>(scale + half * PANEL + v * LANES) * number);
                });
            });
            unroll<VECTORS>([&](auto v) ALWAYS_INLINE { store(out[r] + v * LANES, sums[v]); });
        }
    }
}
#else
// The same where codes of a vector of outputs stay in registers.
template <int BITS, int BYTES, bool TWO_SCALES, bool HAS_MINIMUM>
void add_chunk(const uint8_t *w, const float *scales, const float *minima, int groups, int shift, QuantisedInputs x,
               int rows, PrefetchCursor ahead, float (*out)[PANEL]) {
    constexpr int N = TWO_SCALES ? STEPS / 2 : STEPS;
    for (int g = 0; g < groups; g++, w += code_bytes(BITS)) {
        const int at = (TWO_SCALES ? 2 * g : g >> shift) * PANEL;
        ahead.group();
        for (int v = 0; v < PANEL; v += LANES) {
            vb codes[STEPS];
#pragma GCC unroll 8
            for (int t = 0; t < STEPS; t++) codes[t] = unpack<BITS>(w, v, t);
            const auto number = [&](const float *from, int half) {
                return TWO_SCALES || !half ? load<vf>(from + at + half * PANEL + v) : vf{};
            };
            const vf scale[] = {number(scales, 0), number(scales, 1)},
                     minimum[] = {number(minima, 0), number(minima, 1)};
            const int8_t *q = x.codes + g * x.rows * BYTES * GROUP;
            const float *numbers = x.numbers + g * x.rows * INPUT_NUMBERS;
            for (int r = 0; r < rows; r++, q += BYTES * GROUP, numbers += INPUT_NUMBERS) {
                const auto whole = [&](int half) {
                    return whole_products<BITS, BYTES, N>(
                        vi{}, [&](int t) { return codes[half * N + t]; },
                        [&](int byte, int t) { return splat_four(q + byte * GROUP + 4 * (half * N + t)); });
                };
                store(out[r] + v, add_group<TWO_SCALES, HAS_MINIMUM>(
                                      load<vf>(out[r] + v), whole, [&](int half) { return scale[half]; },
                                      [&](int half) { return minimum[half]; }, numbers));
            }
        }
    }
}
#endif

// Reads the scales (or minima) of a vector of outputs, from output `first` on; SCALES: how they are stored.
template <int SCALES, class Level>
inline vf scale_at(const uint8_t *from, const float *super, int i, int first) {
    if constexpr (SCALES == LEVELS)
        return load<vf>(super + first) * load_int8<Level>(from + 2 * PANEL + i * PANEL + first);
    if constexpr (SCALES == HALVES) return load_halves(from + 2 * (i * PANEL + first));
    return load<vf>(from + 4 * (i * PANEL + first));
}

// The same for one row, with identical bits. Scales are read where they are needed, and single-byte inputs once for all
// outputs.
template <int BITS, int BYTES, bool TWO_SCALES, bool HAS_MINIMUM, int SCALES>
void add_chunk_to_one(const uint8_t *w, const uint8_t *scales, const uint8_t *minima, int groups, int shift,
                      float offset_shift, QuantisedInputs x, PrefetchCursor ahead, float *out) {
    constexpr int N = TWO_SCALES ? STEPS / 2 : STEPS;
    alignas(64) float super[PANEL], super_minimum[PANEL];
    if (SCALES == LEVELS)
        for (int v = 0; v < PANEL; v += LANES) {
            store(super + v, load_halves(scales + 2 * v));
            if (minima) store(super_minimum + v, load_halves(minima + 2 * v) * -1.f);
        }
    vf sums[PANEL / LANES];
    for (int v = 0; v < PANEL / LANES; v++) sums[v] = load<vf>(out + v * LANES);
    for (int g = 0; g < groups; g++, w += code_bytes(BITS)) {
        const int8_t *q = x.codes + g * x.rows * BYTES * GROUP;
        const float *numbers = x.numbers + g * x.rows * INPUT_NUMBERS;
        const int at = TWO_SCALES ? 2 * g : g >> shift;
        vb fours[STEPS];
        for (int t = 0; t < STEPS; t++) fours[t] = splat_four(q + 4 * t);
        vi start[2] = {};  // signed codes would take one more operation for each step
        if (BITS < 8 && middle(BITS))
            for (int half = 0; half < (TWO_SCALES ? 2 : 1); half++)
                start[half] = __builtin_convertvector(splat(numbers[3 + half] * float(-middle(BITS))), vi);
        ahead.group();
        for (int v = 0; v < PANEL / LANES; v++) {
            const int first = v * LANES;
            const auto whole = [&](int half) {
                return whole_products<BITS, BYTES, N>(
                    start[half], [&](int t) { return unpack<BITS>(w, first, half * N + t); },
                    [&](int byte, int t) {
                        return BYTES == 1 ? fours[half * N + t] : splat_four(q + byte * GROUP + 4 * (half * N + t));
                    });
            };
            const auto scale = [&](int half) { return scale_at<SCALES, int8_t>(scales, super, at + half, first); };
            const auto minimum = [&](int half) {
                const vf shifted = scale(half) * offset_shift;
                return minima ? shifted + scale_at<SCALES, uint8_t>(minima, super_minimum, at + half, first) : shifted;
            };
            sums[v] = add_group<TWO_SCALES, HAS_MINIMUM>(sums[v], whole, scale, minimum, numbers);
        }
    }
    for (int v = 0; v < PANEL / LANES; v++) store(out + v * LANES, sums[v]);
}

using AddChunk = void (*)(const uint8_t *, const float *, const float *, int, int, QuantisedInputs, int, PrefetchCursor,
                          float (*)[PANEL]);
using AddChunkToOne = void (*)(const uint8_t *, const uint8_t *, const uint8_t *, int, int, float, QuantisedInputs,
                               PrefetchCursor, float *);
struct ChunkKernels {
    AddChunk some;
    AddChunkToOne one;
};
template <int BITS, int BYTES, bool TWO_SCALES, bool HAS_MINIMUM>
ChunkKernels chunk_kernels(int scales) {
    constexpr int LINES = SIGNED_CODES && BITS == 8 ? 2 : BYTES;
    return {add_chunk<BITS, LINES, TWO_SCALES, HAS_MINIMUM>,
            scales == LEVELS   ? add_chunk_to_one<BITS, BYTES, TWO_SCALES, HAS_MINIMUM, LEVELS>
            : scales == HALVES ? add_chunk_to_one<BITS, BYTES, TWO_SCALES, HAS_MINIMUM, HALVES>
                               : add_chunk_to_one<BITS, BYTES, TWO_SCALES, HAS_MINIMUM, FLOATS>};
}
template <int BITS, int BYTES, bool TWO_SCALES>
ChunkKernels chunk_kernels(const PackedFormat &format) {
    // No format has offset 0. So with a middle of 0 this is never reached, and needs no kernel of its own.
    if (!format.minimum && format.offset == middle(BITS))
        return chunk_kernels<BITS, BYTES, TWO_SCALES, !middle(BITS)>(format.scales);
    return chunk_kernels<BITS, BYTES, TWO_SCALES, true>(format.scales);
}
template <int BITS>
ChunkKernels chunk_kernels(const PackedFormat &format, bool precise) {
    if (format.group < GROUP)
        return precise ? chunk_kernels<BITS, 2, true>(format) : chunk_kernels<BITS, 1, true>(format);
    return precise ? chunk_kernels<BITS, 2, false>(format) : chunk_kernels<BITS, 1, false>(format);
}
inline ChunkKernels chunk_kernels(const PackedFormat &format, bool precise) {
    return format.bits == 4   ? chunk_kernels<4>(format, precise)
           : format.bits == 5 ? chunk_kernels<5>(format, precise)
           : format.bits == 6 ? chunk_kernels<6>(format, precise)
                              : chunk_kernels<8>(format, precise);
}

// The same for fp8 weights; inputs [rows][stride] are bf16.
inline void add_fp8_chunk(const uint8_t *w, const float *scales, int groups, int shift, const bf16 *x, int64_t stride,
                          int rows, PrefetchCursor ahead, float (*out)[PANEL]) {
    for (int g = 0; g < groups; g++, w += code_bytes(8)) {
        alignas(64) float wide[GROUP][PANEL];
        ahead.group();
        for (int k = 0; k < GROUP; k++)
            for (int v = 0; v < PANEL; v += LANES) store(wide[k] + v, load_e4m3(w + k * PANEL + v));
        for (int r = 0; r < rows; r++) {
            vf sums[PANEL / LANES] = {};
            for (int k = 0; k < GROUP; k++) {
                const float factor = to_float(x[r * stride + g * GROUP + k]);
                for (int v = 0; v < PANEL / LANES; v++) sums[v] += load<vf>(wide[k] + v * LANES) * factor;
            }
            for (int v = 0; v < PANEL / LANES; v++)
                store(out[r] + v * LANES,
                      load<vf>(out[r] + v * LANES) + sums[v] * load<vf>(scales + (g >> shift) * PANEL + v * LANES));
        }
    }
}

}  // namespace
