// Panels of packed weights: how rows become panels, and how kernels read a panel's scales.
//
// A panel is 32 outputs, in chunks of 256 inputs: scales, minima if any, then codes in groups of 32 inputs. Step t of
// eight holds inputs 4t … 4t + 3 of each output, four bytes together, as dot-product instructions read them. Codes are
// stored as planes of such steps. Plane u of the first four holds the low nibbles of steps 2u and 2u + 1. Then follow,
// for 5 bits, a plane of bit 4 of all steps; for 6 bits, two planes of bits 4 and 5 of four steps each. Codes of eight
// bits are stored step by step. fp8: 32 outputs of input 0, of input 1, …

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "packed_rows.h"
#include "structures.h"
#include "vectors.h"

namespace {

constexpr int GROUP = 32;         // inputs that share a scale once they are quantised
constexpr int STEPS = GROUP / 4;  // of four inputs each, in a group

constexpr int code_bytes(int bits) { return PANEL * GROUP * bits / 8; }  // of a group of a panel
inline int groups_in(const PackedFormat &format, int count) {
    return (count + std::min(format.group, CHUNK) - 1) / std::min(format.group, CHUNK);
}
inline int scale_bytes(const PackedFormat &format, int count) {  // before the codes of a chunk of `count` inputs
    const int groups = groups_in(format, count), sets = format.minimum ? 2 : 1;
    return sets * PANEL * (format.scales == LEVELS ? 2 + groups : format.scales == HALVES ? 2 * groups : 4 * groups);
}
inline int64_t panel_bytes(const PackedFormat &format, int64_t inputs) {
    int64_t bytes = inputs / CHUNK * scale_bytes(format, CHUNK) + inputs / GROUP * code_bytes(format.bits);
    return inputs % CHUNK ? bytes + scale_bytes(format, int(inputs % CHUNK)) : bytes;
}

// Packs codes of 32 inputs into planes. step[t] holds step t of one output, or of a vector of outputs; put(plane, word)
// stores the result.
template <class Word, class Put>
inline void pack_words(int bits, const Word (&step)[STEPS], Put put) {
    if (bits == 8) {
        for (int t = 0; t < STEPS; t++) put(t, step[t]);
        return;
    }
    for (int u = 0; u < 4; u++) put(u, (step[2 * u] & 0x0f0f0f0fu) | (step[2 * u + 1] & 0x0f0f0f0fu) << 4);
    if (bits == 5) {
        Word word{};
        for (int t = 0; t < STEPS; t++) word |= (step[t] >> 4 & 0x01010101u) << t;
        put(4, word);
    }
    if (bits == 6)
        for (int half = 0; half < 2; half++) {
            Word word{};
            for (int t = 0; t < 4; t++) word |= (step[4 * half + t] >> 4 & 0x03030303u) << 2 * t;
            put(4 + half, word);
        }
}

// The same for codes [PANEL][CHUNK], from input `at` on.
inline void pack_codes(int bits, const uint8_t (*codes)[CHUNK], int at, uint8_t *to) {
    for (int j = 0; j < PANEL; j++) {
        uint32_t step[STEPS];
        std::memcpy(step, codes[j] + at, sizeof step);
        pack_words(bits, step, [&](int plane, uint32_t word) { std::memcpy(to + (plane * PANEL + j) * 4, &word, 4); });
    }
}

inline uint16_t exact_half(float f) {  // Converts a float that float16 represents exactly.
    uint32_t u;
    std::memcpy(&u, &f, 4);
    const uint16_t sign = uint16_t(u >> 16 & 0x8000);
    const int exponent = int(u >> 23 & 255) - 112;
    const uint32_t rest = (u & 0x7fffff) | 0x800000;
    if (!(u & 0x7fffffff) || exponent < -10) return sign;
    return uint16_t(exponent > 0 ? sign | exponent << 10 | (rest >> 13 & 1023) : sign | rest >> (14 - exponent));
}

// Packs one panel from 32 rows, null for missing ones.
inline void pack_panel(const PackedFormat &format, const uint8_t *const *rows, int64_t inputs, uint8_t *to) {
    thread_local uint8_t codes[PANEL][CHUNK];
    ChunkScales numbers[PANEL];
    for (int64_t from = 0; from < inputs; from += CHUNK) {
        const int count = int(std::min<int64_t>(CHUNK, inputs - from)), groups = groups_in(format, count);
        for (int j = 0; j < PANEL; j++) {
            if (rows[j]) read_chunk(format, rows[j], inputs, from, count, codes[j], numbers[j]);
            else {
                std::memset(codes[j], 0, CHUNK);
                std::memset(static_cast<void *>(&numbers[j]), 0, sizeof(ChunkScales));
            }
        }
        const auto put = [&](auto value, auto of) {
            for (int i = 0; i < groups; i++)
                for (int j = 0; j < PANEL; j++, to += sizeof(value)) {
                    value = of(numbers[j], i);
                    std::memcpy(to, &value, sizeof(value));
                }
        };
        const auto once = [&](auto of) {
            for (int j = 0; j < PANEL; j++, to += 2) {
                const uint16_t value = of(numbers[j]);
                std::memcpy(to, &value, 2);
            }
        };
        const bool coded = format.type == CODES;  // rows of codes have float32 scales, whatever panels store
        if (format.scales == LEVELS) {
            once([](const ChunkScales &n) { return n.super; });
            put(int8_t(), [](const ChunkScales &n, int i) { return n.level[i]; });
            if (format.minimum) {
                once([](const ChunkScales &n) { return n.super_minimum; });
                put(uint8_t(), [](const ChunkScales &n, int i) { return n.minimum_level[i]; });
            }
        } else if (format.scales == HALVES) {
            put(uint16_t(), [&](const ChunkScales &n, int i) { return coded ? exact_half(n.scale[i]) : n.scale16[i]; });
            if (format.minimum)
                put(uint16_t(),
                    [&](const ChunkScales &n, int i) { return coded ? exact_half(n.minimum[i]) : n.minimum16[i]; });
        } else {
            put(float(), [](const ChunkScales &n, int i) { return n.scale[i]; });
            if (format.minimum) put(float(), [](const ChunkScales &n, int i) { return n.minimum[i]; });
        }
        for (int at = 0; at < count; at += GROUP) {
            if (format.type == FP8)
                for (int k = 0; k < GROUP; k++)
                    for (int j = 0; j < PANEL; j++) to[k * PANEL + j] = codes[j][at + k];
            else pack_codes(format.bits, codes, at, to);
            to += code_bytes(format.bits);
        }
    }
}

// Scales of a chunk as floats [groups][PANEL].

inline vf load_halves(const uint8_t *p) {
#if defined(__AVX512F__)
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
#elif defined(__F16C__) && defined(__AVX2__)
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
#else
    vf v;
    for (int i = 0; i < LANES; i++) v[i] = from_half(half_at(p + 2 * i));
    return v;
#endif
}
// Loads a vector of fp8 numbers (e4m3).
inline vf load_e4m3(const uint8_t *p) {
    typedef uint8_t vn __attribute__((vector_size(LANES)));
    const vh wide = __builtin_convertvector(load<vn>(p), vh);
    const vh half = (wide & 128) << 8 | (wide & 127) << 7;
    return load_halves((const uint8_t *)&half) * 256.f;
}
template <class T>
inline vf load_int8(const uint8_t *p) {
#if defined(__AVX512F__)
    const __m128i small = _mm_loadu_si128((const __m128i *)p);
    return (vf)_mm512_cvtepi32_ps(std::is_signed<T>::value ? _mm512_cvtepi8_epi32(small) : _mm512_cvtepu8_epi32(small));
#elif defined(__AVX2__)
    const __m128i small = _mm_loadl_epi64((const __m128i *)p);
    return (vf)_mm256_cvtepi32_ps(std::is_signed<T>::value ? _mm256_cvtepi8_epi32(small) : _mm256_cvtepu8_epi32(small));
#else
    typedef T small __attribute__((vector_size(LANES)));
    return __builtin_convertvector(load<small>(p), vf);
#endif
}

// Reads one set: the scales, or the minima with sign -1.
template <class Level>
void read_scales(const PackedFormat &format, int groups, float sign, const uint8_t *from, float *to) {
    for (int v = 0; v < PANEL; v += LANES) {
        const vf super = format.scales == LEVELS ? load_halves(from + 2 * v) * sign : vf{};
        for (int i = 0; i < groups; i++) {
            const int at = i * PANEL + v;
            store(to + at, format.scales == LEVELS   ? super * load_int8<Level>(from + 2 * PANEL + at)
                           : format.scales == HALVES ? load_halves(from + 2 * at)
                                                     : load<vf>(from + 4 * at));
        }
    }
}

}  // namespace
