// Rows of packed weights as checkpoints store them: GGUF's blocks, integer codes with scales, fp8.
// engine/quantised/packed.py describes the formats. Rows are read to be packed into panels (packed_layout.h), or to
// look up a token's embedding.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "structures.h"
#include "vectors.h"

namespace {

constexpr int CHUNK = 256;     // weights of a row that are read, and packed, together
constexpr int MIN_GROUP = 16;  // fewest weights that share a scale

// The scales and minima of a chunk. The format decides which of them are set.
struct ChunkScales {
    uint16_t scale16[CHUNK / 32], minimum16[CHUNK / 32], super = 0, super_minimum = 0;  // float16
    float scale[CHUNK / MIN_GROUP], minimum[CHUNK / MIN_GROUP];
    int8_t level[CHUNK / MIN_GROUP];           // multiplied by `super`
    uint8_t minimum_level[CHUNK / MIN_GROUP];  // multiplied by -super_minimum
};

inline float from_half(uint16_t h) {
#ifdef __F16C__
    return _cvtsh_ss(h);
#else
    const uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = h >> 10 & 31, rest = h & 1023;
    if (exponent == 0) {
        const float f = std::ldexp(float(rest), -24);
        return sign ? -f : f;
    }
    const uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | rest << 13;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
#endif
}

inline uint16_t half_at(const uint8_t *p) {
    uint16_t h;
    std::memcpy(&h, p, 2);
    return h;
}
inline float float_at(const uint8_t *p) {
    float f;
    std::memcpy(&f, p, 4);
    return f;
}

// Blocks of 32 weights.

inline void nibbles(const uint8_t *q, uint8_t *codes) {
    for (int i = 0; i < 16; i++) {
        codes[i] = q[i] & 15;
        codes[i + 16] = q[i] >> 4;
    }
}
inline void fifth_bits(const uint8_t *high, uint8_t *codes) {
    for (int i = 0; i < 32; i++) codes[i] |= (high[i / 8] >> i % 8 & 1) << 4;
}

constexpr int8_t IQ4_NL_VALUES[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t MXFP4_VALUES[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

inline void decode_block32(int type, const uint8_t *b, uint8_t *codes, int i, ChunkScales &n) {
    switch (type) {
    case Q4_0:
        n.scale16[i] = half_at(b);
        nibbles(b + 2, codes);
        break;
    case Q4_1:
        n.scale16[i] = half_at(b);
        n.minimum16[i] = half_at(b + 2);
        nibbles(b + 4, codes);
        break;
    case Q5_0:
        n.scale16[i] = half_at(b);
        nibbles(b + 6, codes);
        fifth_bits(b + 2, codes);
        break;
    case Q5_1:
        n.scale16[i] = half_at(b);
        n.minimum16[i] = half_at(b + 2);
        nibbles(b + 8, codes);
        fifth_bits(b + 4, codes);
        break;
    case Q8_0:
        n.scale16[i] = half_at(b);
        for (int j = 0; j < 32; j++) codes[j] = b[2 + j] ^ 128;
        break;
    case IQ4_NL:
        n.scale16[i] = half_at(b);
        nibbles(b + 2, codes);
        for (int j = 0; j < 32; j++) codes[j] = uint8_t(IQ4_NL_VALUES[codes[j]] + 128);
        break;
    case MXFP4:
        n.scale[i] = std::ldexp(1.f, int(b[0]) - 128);
        nibbles(b + 1, codes);
        for (int j = 0; j < 32; j++) codes[j] = uint8_t(MXFP4_VALUES[codes[j]] + 12);
        break;
    }
}

// Blocks of 256 weights (K-quants).

// Reads eight scales and eight minima of six bits each.
inline void six_bit_scales(const uint8_t *s, ChunkScales &n) {
    for (int i = 0; i < 4; i++) {
        n.level[i] = s[i] & 63;
        n.minimum_level[i] = s[i + 4] & 63;
        n.level[i + 4] = int8_t((s[i + 8] & 15) | s[i] >> 6 << 4);
        n.minimum_level[i + 4] = uint8_t(s[i + 8] >> 4 | s[i + 4] >> 6 << 4);
    }
}
inline void long_nibbles(const uint8_t *q, uint8_t *codes) {
    for (int part = 0; part < 4; part++)
        for (int i = 0; i < 32; i++) {
            codes[64 * part + i] = q[32 * part + i] & 15;
            codes[64 * part + 32 + i] = q[32 * part + i] >> 4;
        }
}
inline void two_bit_codes(const uint8_t *q, uint8_t *codes) {
    for (int part = 0; part < 8; part++)
        for (int i = 0; i < 32; i++) codes[32 * part + i] = q[part / 4 * 32 + i] >> 2 * (part % 4) & 3;
}

inline void decode_block256(int type, const uint8_t *b, uint8_t *codes, ChunkScales &n) {
    switch (type) {
    case Q2_K:
        for (int i = 0; i < 16; i++) {
            n.level[i] = b[i] & 15;
            n.minimum_level[i] = b[i] >> 4;
        }
        two_bit_codes(b + 16, codes);
        n.super = half_at(b + 80);
        n.super_minimum = half_at(b + 82);
        break;
    case Q3_K: {
        const uint8_t *s = b + 96;
        for (int i = 0; i < 16; i++)
            n.level[i] = int8_t(((i < 8 ? s[i] & 15 : s[i - 8] >> 4) | (s[8 + i % 4] >> 2 * (i / 4) & 3) << 4) - 32);
        two_bit_codes(b + 32, codes);
        for (int i = 0; i < CHUNK; i++) codes[i] |= (b[i % 32] >> i / 32 & 1) << 2;
        n.super = half_at(b + 108);
        break;
    }
    case Q4_K:
        n.super = half_at(b);
        n.super_minimum = half_at(b + 2);
        six_bit_scales(b + 4, n);
        long_nibbles(b + 16, codes);
        break;
    case Q5_K:
        n.super = half_at(b);
        n.super_minimum = half_at(b + 2);
        six_bit_scales(b + 4, n);
        long_nibbles(b + 48, codes);
        for (int part = 0; part < 8; part++)
            for (int i = 0; i < 32; i++) codes[32 * part + i] |= (b[16 + i] >> part & 1) << 4;
        break;
    case Q6_K:
        for (int half = 0; half < 2; half++)
            for (int part = 0; part < 4; part++)
                for (int i = 0; i < 32; i++) {
                    const uint8_t low = b[64 * half + part % 2 * 32 + i];
                    codes[128 * half + 32 * part + i] =
                        uint8_t((part < 2 ? low & 15 : low >> 4) | (b[128 + 32 * half + i] >> 2 * part & 3) << 4);
                }
        for (int i = 0; i < 16; i++) n.level[i] = int8_t(b[192 + i]);
        n.super = half_at(b + 208);
        break;
    }
}

// Reads codes (or fp8 numbers) from … from + count - 1 of a row and their scales; `from` is a multiple of CHUNK.
inline void read_chunk(const PackedFormat &format, const uint8_t *row, int64_t inputs, int64_t from, int count,
                       uint8_t *codes, ChunkScales &n) {
    if (format.type == CODES || format.type == FP8) {
        std::memcpy(codes, row + from, count);
        const int group = std::min(format.group, CHUNK);
        const uint8_t *scales = row + inputs, *minima = scales + inputs / format.group * 4;
        for (int i = 0; i * group < count; i++) {
            const int64_t at = (from + i * group) / format.group * 4;
            n.scale[i] = float_at(scales + at);
            if (format.minimum) n.minimum[i] = float_at(minima + at);
        }
    } else if (format.block == 32) {
        for (int i = 0; i < count / 32; i++)
            decode_block32(format.type, row + (from / 32 + i) * format.block_bytes, codes + 32 * i, i, n);
    } else {
        decode_block256(format.type, row + from / CHUNK * format.block_bytes, codes, n);
    }
}

inline float e4m3(uint8_t b) { return from_half(uint16_t((b & 128) << 8 | (b & 127) << 7)) * 256.f; }

// Converts a row to floats.
inline void read_row(const PackedFormat &format, const uint8_t *row, int64_t inputs, float *to) {
    uint8_t codes[CHUNK];
    ChunkScales n;
    for (int64_t from = 0; from < inputs; from += CHUNK) {
        const int count = int(std::min<int64_t>(CHUNK, inputs - from)), group = std::min(format.group, CHUNK);
        read_chunk(format, row, inputs, from, count, codes, n);
        for (int k = 0; k < count; k++) {
            const int i = k / group;
            const float scale = format.scales == LEVELS   ? from_half(n.super) * n.level[i]
                                : format.scales == HALVES ? from_half(n.scale16[i])
                                                          : n.scale[i];
            const float minimum = !format.minimum           ? 0.f
                                  : format.scales == LEVELS ? -from_half(n.super_minimum) * n.minimum_level[i]
                                  : format.scales == HALVES ? from_half(n.minimum16[i])
                                                            : n.minimum[i];
            to[from + k] =
                format.type == FP8 ? e4m3(codes[k]) * scale : float(codes[k] - format.offset) * scale + minimum;
        }
    }
}

}  // namespace
