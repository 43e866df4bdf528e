// Linear layers whose weights stay packed: 4-, 5-, 6- and 8-bit codes in groups, and fp8.
//
// Inputs are rounded to eight bits in groups of 32, as ggml does, or, where a layer is `precise`, to fifteen: RATIO · a
// first byte + a second, each multiplied with the weights. A group's products are whole numbers, whatever their order, and
// are scaled and added up in float32 in one order: a row's result does not depend on other rows. Inputs of fp8 weights
// stay bf16.
//
// A panel is 32 outputs, in chunks of 256 inputs: what the codes are scaled with, then the codes, 32 inputs at a time.
// Step t of eight holds inputs 4t … 4t + 3 of each output, side by side, as dot-product instructions want: a nibble of
// steps 2u and 2u + 1 in each byte of plane u, then, for more than four bits, a plane of bit 4 of all steps (5 bits), or
// two of bits 4 and 5 of four steps each (6 bits). Eight bits: the steps. fp8: outputs of input 0, of input 1, …

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "blocks.h"
#include "structures.h"
#include "team.h"
#include "vectors.h"

namespace {

constexpr int GROUP = 32, STEPS = GROUP / 4;  // inputs that share a scale of their own, and how many fours that is
constexpr int NUMBERS = 5;         // that belong to a group of a row
constexpr int RATIO = 254;         // of the units of a precise input's two bytes
constexpr int AHEAD_BYTES = 2048;  // that weights are asked for before they are needed: 1 to 3 KiB read fastest, 4 a tenth slower
constexpr int QUANTISED_ALONE = 16384;  // inputs that are not worth sharing out
constexpr int PACKED_ROWS = 64;  // rows that read an unpacked group: their sums stay in the first-level cache
constexpr int PANELS_BYTES = 128 << 10;  // of weights, at most, that a thread takes at a time
typedef uint8_t vb __attribute__((vector_size(4 * LANES)));
typedef int16_t vs __attribute__((vector_size(4 * LANES)));

template <class T> struct Buffer {
    T *get(size_t n) {
        if (n <= size) return data;
        std::free(data);
        data = static_cast<T *>(std::aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64));
        if (!data) {
            std::fprintf(stderr, "knapserve: no memory for %zu bytes of scratch\n", n * sizeof(T));
            std::abort();
        }
        size = n;
        return data;
    }
    ~Buffer() { std::free(data); }
    T *data = nullptr;
    size_t size = 0;
};

// ---- layout

constexpr int code_bytes(int bits) { return PANEL * GROUP * bits / 8; }  // of a group of a panel
inline int groups_in(const Written &how, int count) { return (count + std::min(how.group, CHUNK) - 1) / std::min(how.group, CHUNK); }
inline int number_bytes(const Written &how, int count) {  // before the codes of a chunk of so many inputs
    const int groups = groups_in(how, count), sets = how.minimum ? 2 : 1;
    return sets * PANEL * (how.scales == LEVELS ? 2 + groups : how.scales == HALVES ? 2 * groups : 4 * groups);
}
inline int64_t panel_bytes(const Written &how, int64_t inputs) {
    int64_t bytes = inputs / CHUNK * number_bytes(how, CHUNK) + inputs / GROUP * code_bytes(how.bits);
    return inputs % CHUNK ? bytes + number_bytes(how, int(inputs % CHUNK)) : bytes;
}

// Codes of 32 inputs, four to a word (of one output, or a vector of outputs), as the kernels read them: planes of words.
template <class Word, class Put> inline void lay_out_words(int bits, const Word (&step)[STEPS], Put put) {
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

// The same of codes [PANEL][CHUNK] from `at` on.
inline void lay_out(int bits, const uint8_t (*codes)[CHUNK], int at, uint8_t *to) {
    for (int j = 0; j < PANEL; j++) {
        uint32_t step[STEPS];
        std::memcpy(step, codes[j] + at, sizeof step);
        lay_out_words(bits, step, [&](int plane, uint32_t word) { std::memcpy(to + (plane * PANEL + j) * 4, &word, 4); });
    }
}

inline uint16_t to_half(float f) {  // of a float that is one
    uint32_t u; std::memcpy(&u, &f, 4);
    const uint16_t sign = uint16_t(u >> 16 & 0x8000);
    const int exponent = int(u >> 23 & 255) - 112;
    const uint32_t rest = (u & 0x7fffff) | 0x800000;
    if (!(u & 0x7fffffff) || exponent < -10) return sign;
    return uint16_t(exponent > 0 ? sign | exponent << 10 | (rest >> 13 & 1023) : sign | rest >> (14 - exponent));
}

// One panel from 32 rows, some of which may be missing.
inline void lay_out_panel(const Written &how, const uint8_t *const *rows, int64_t inputs, uint8_t *to) {
    thread_local uint8_t codes[PANEL][CHUNK];
    Numbers numbers[PANEL];
    for (int64_t from = 0; from < inputs; from += CHUNK) {
        const int count = int(std::min<int64_t>(CHUNK, inputs - from)), groups = groups_in(how, count);
        for (int j = 0; j < PANEL; j++) {
            if (rows[j]) read_chunk(how, rows[j], inputs, from, count, codes[j], numbers[j]);
            else { std::memset(codes[j], 0, CHUNK); std::memset(static_cast<void *>(&numbers[j]), 0, sizeof(Numbers)); }
        }
        const auto put = [&](auto value, auto of) {
            for (int i = 0; i < groups; i++)
                for (int j = 0; j < PANEL; j++, to += sizeof(value)) { value = of(numbers[j], i); std::memcpy(to, &value, sizeof(value)); }
        };
        const auto once = [&](auto of) {
            for (int j = 0; j < PANEL; j++, to += 2) { const uint16_t value = of(numbers[j]); std::memcpy(to, &value, 2); }
        };
        const bool coded = how.type == CODES;  // whose numbers are written as floats, whatever they fit into
        if (how.scales == LEVELS) {
            once([](const Numbers &n) { return n.super; });
            put(int8_t(), [](const Numbers &n, int i) { return n.level[i]; });
            if (how.minimum) {
                once([](const Numbers &n) { return n.super_minimum; });
                put(uint8_t(), [](const Numbers &n, int i) { return n.minimum_level[i]; });
            }
        } else if (how.scales == HALVES) {
            put(uint16_t(), [&](const Numbers &n, int i) { return coded ? to_half(n.scale[i]) : n.scale16[i]; });
            if (how.minimum) put(uint16_t(), [&](const Numbers &n, int i) { return coded ? to_half(n.minimum[i]) : n.minimum16[i]; });
        } else {
            put(float(), [](const Numbers &n, int i) { return n.scale[i]; });
            if (how.minimum) put(float(), [](const Numbers &n, int i) { return n.minimum[i]; });
        }
        for (int at = 0; at < count; at += GROUP) {
            if (how.type == FP8)
                for (int k = 0; k < GROUP; k++)
                    for (int j = 0; j < PANEL; j++) to[k * PANEL + j] = codes[j][at + k];
            else lay_out(how.bits, codes, at, to);
            to += code_bytes(how.bits);
        }
    }
}

// ---- scales of a chunk as floats [groups][PANEL]

inline vf halves(const uint8_t *p) {
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
template <class T> inline vf widened(const uint8_t *p) {
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

// Of one set, scales or minima.
template <class Level> void numbers_of(const Written &how, int groups, float sign, const uint8_t *from, float *to) {
    for (int v = 0; v < PANEL; v += LANES) {
        const vf super = how.scales == LEVELS ? halves(from + 2 * v) * sign : vf{};
        for (int i = 0; i < groups; i++) {
            const int at = i * PANEL + v;
            store(to + at, how.scales == LEVELS ? super * widened<Level>(from + 2 * PANEL + at)
                         : how.scales == HALVES ? halves(from + 2 * at) : load<vf>(from + 4 * at));
        }
    }
}

// ---- inputs

// Where no instruction multiplies bytes and adds up four products, products of two are added up in sixteen bits. The codes of
// weights are signed then, what is subtracted from them being their middle: that leaves room for more products.
#if defined(__AVX2__) && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
#define SIGNED true
#else
#define SIGNED false
#endif
constexpr int middle(int bits) { return SIGNED && bits > 4 ? 1 << (bits - 1) : 0; }  // four bits gain nothing by it

// How `add_chunk` wants the codes of several rows then: unsigned, with 128 added to each byte, or, where weights have eight
// bits, as words: those of inputs 0 and 2 of each step, then those of inputs 1 and 3.
inline bool as_words(int bits, int64_t rows) { return SIGNED && rows > 1 && bits == 8; }

// Rows as codes, 32 inputs at a time: code · scale, a code being one byte, or RATIO · one + another.
struct Inputs {
    const int8_t *codes;     // [groups][rows][bytes of a code][GROUP]
    const float *numbers;    // [groups][rows][NUMBERS]: the scale; it times the sum of the codes, or, where weights are FINE, of each half; these sums
    int64_t rows;
};

// Whole numbers [-127, 127] of GROUP floats as bytes.
inline void to_bytes(const vf *whole, int8_t *to) {
#if defined(__AVX512F__)
    for (int i = 0; i < GROUP / LANES; i++)
        _mm_storeu_si128((__m128i *)(to + i * LANES), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32((__m512)whole[i])));
#elif defined(__AVX2__)
    const auto pair = [&](int i) { return _mm256_packs_epi32(_mm256_cvtps_epi32((__m256)whole[i]), _mm256_cvtps_epi32((__m256)whole[i + 1])); };
    const __m256i mixed = _mm256_packs_epi16(pair(0), pair(2));  // halves of the registers are packed apart
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
#else
    for (int i = 0; i < GROUP; i++) to[i] = int8_t(whole[i / LANES][i % LANES]);
#endif
}

// A group's codes, as `as_words` says.
template <int BYTES> inline void put_codes(const int8_t (*bytes)[GROUP], bool wide, int64_t rows, int8_t *to) {
    typedef uint8_t line __attribute__((vector_size(GROUP)));
    typedef int16_t words __attribute__((vector_size(GROUP)));
    if (wide) {
        words even{}, odd{};
        for (int byte = 0; byte < BYTES; byte++) {
            const words both = load<words>(bytes[byte]);
            even = even * RATIO + (both << 8 >> 8);
            odd = odd * RATIO + (both >> 8);
        }
        store(to, even);
        store(to + GROUP, odd);
    } else {
        const uint8_t more = SIGNED && rows > 1 ? 128 : 0;
        for (int byte = 0; byte < BYTES; byte++) store(to + byte * GROUP, load<line>(bytes[byte]) + more);
    }
}

// One row, into row number `row` of all.
template <int BYTES>
void quantise(const bf16 *x, const int32_t *order, bool fine, bool wide, int64_t inputs, int64_t rows, int64_t row, int8_t *codes, float *numbers) {
    constexpr int VECTORS = GROUP / LANES;
    const vf magic = splat(12582912.f);  // what is added to it has no places behind the point left
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
        const float most = highest(most_of), unit = most / 127.f;
        float inverse = most > 0 ? 127.f / most : 0.f, factor = BYTES == 2 ? RATIO : 1;
        for (int byte = 0; byte < BYTES; byte++, inverse *= RATIO, factor = 1) {
            vf whole[VECTORS];
            for (int i = 0; i < VECTORS; i++) {
                whole[i] = (value[i] * inverse + magic) - magic;
                value[i] -= whole[i] * unit;
                (i < VECTORS / 2 ? low : high) += whole[i] * factor;
            }
            to_bytes(whole, bytes[byte]);
        }
        put_codes<BYTES>(bytes, wide, rows, codes + (g * rows + row) * (wide ? 2 : BYTES) * GROUP);
        const float scale = BYTES == 2 ? unit / RATIO : unit;
        float *number = numbers + (g * rows + row) * NUMBERS;
        number[3] = total(fine ? low : low + high);
        number[4] = fine ? total(high) : 0.f;
        number[0] = scale + 0.f * (number[3] + number[4]);  // not a number where an input is none
        for (int half = 0; half < 2; half++) number[1 + half] = scale * number[3 + half];
    }
}

// ---- products of unsigned codes with signed inputs, four at a time

#if defined(__AVX512BW__)
inline vb splat_four(const int8_t *p) { return (vb)_mm512_set1_epi32(int(load<int32_t>(p))); }
inline vs pairs_of(vb codes, vb x) { return (vs)_mm512_maddubs_epi16((__m512i)codes, (__m512i)x); }
inline vi words_of(vs a, vs b) { return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b); }
inline vb magnitude(vb w) { return (vb)_mm512_abs_epi8((__m512i)w); }
inline vb signed_by(vb x, vb w) {
    return (vb)_mm512_mask_sub_epi8((__m512i)x, _mm512_movepi8_mask((__m512i)w), _mm512_setzero_si512(), (__m512i)x);
}
#elif defined(__AVX2__)
inline vb splat_four(const int8_t *p) { return (vb)_mm256_set1_epi32(int(load<int32_t>(p))); }
inline vs pairs_of(vb codes, vb x) { return (vs)_mm256_maddubs_epi16((__m256i)codes, (__m256i)x); }
inline vi words_of(vs a, vs b) { return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b); }
inline vb magnitude(vb w) { return (vb)_mm256_abs_epi8((__m256i)w); }
inline vb signed_by(vb x, vb w) { return (vb)_mm256_sign_epi8((__m256i)x, (__m256i)w); }
#endif
#if defined(__AVX512BW__) || defined(__AVX2__)
inline vi fours_of(vs pairs, int factor) { return words_of(pairs, vs{} + short(factor)); }
#else
inline vb splat_four(const int8_t *p) { return (vb)(load<uint32_t>(p) - vu{}); }
#endif
#if defined(__AVX512VNNI__)
inline vi add_fours(vi sums, vb codes, vb x) { return (vi)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)codes, (__m512i)x); }
#elif defined(__AVXVNNI__)
inline vi add_fours(vi sums, vb codes, vb x) { return (vi)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)codes, (__m256i)x); }
#endif

// `sums` + Σ codes · fours over N steps, fours(byte, t) being those of the inputs of step t, splat. Unrolled by request: left to
// itself the compiler keeps loops, which take twice as long with five bits.
template <int BITS, int BYTES, int N, class Codes, class Fours> inline vf whole_products(vi sums, Codes codes, Fours fours) {
#pragma GCC unroll 8
    for (int byte = 0; byte < BYTES; byte++) {
        const int factor = byte < BYTES - 1 ? RATIO : 1;
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
        vi some{};
#pragma GCC unroll 8
        for (int t = 0; t < N; t++) some = add_fours(some, codes(t), fours(byte, t));
        sums += some * factor;
#elif defined(__AVX2__)
        // So many pairs of products fit into sixteen bits: 15·127·2·8, 31·127·2·4, 63·127·2·2 and 128·127·2 do.
        constexpr int MANY = std::min(N, BITS == 4 ? 8 : BITS == 5 ? 4 : BITS == 6 ? 2 : 1);
#pragma GCC unroll 8
        for (int first = 0; first < N; first += MANY) {
            vs chains[2] = {};  // a single sum would wait for each addition
#pragma GCC unroll 8
            for (int i = 0; i < MANY; i++) {
                vs &pairs = chains[i % 2];
                const vb code = codes(first + i), four = fours(byte, first + i);
                const vs some = BITS == 8 ? pairs_of(magnitude(code), signed_by(four, code)) : pairs_of(code, four);
                pairs = i > 1 ? pairs + some : some;
            }
            const vs pairs = MANY > 1 ? chains[0] + chains[1] : chains[0];
            sums += fours_of(pairs, factor);
        }
#else
        for (int t = 0; t < N; t++)
            for (int i = 0; i < LANES; i++)
                for (int j = 0; j < 4; j++) sums[i] += factor * int32_t(codes(t)[4 * i + j]) * int8_t(fours(byte, t)[4 * i + j]);
#endif
    }
    return __builtin_convertvector(sums, vf);
}

// The codes of step t of a group for a vector of outputs, from number `first` on.
template <int BITS> inline vb unpack(const uint8_t *w, int first, int t) {
    const auto plane = [&](int p) { return load<vu>(w + p * 4 * PANEL + 4 * first); };
    if constexpr (BITS == 8) return (vb)(plane(t) ^ (SIGNED ? 0x80808080u : 0u));
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

// Products of a group's weights, in one sum or, FINE, in one of each half, with what their scales are multiplied with.
template <bool FINE, bool LOWERED, class Whole, class Scale, class Minimum>
inline vf add_group(vf sum, Whole whole, Scale scale, Minimum minimum, const float *numbers) {
    constexpr int HALVES_OF = FINE ? 2 : 1;
    if (LOWERED) for (int half = 0; half < HALVES_OF; half++) sum += minimum(half) * numbers[1 + half];
    for (int half = 0; half < HALVES_OF; half++) sum += whole(half) * (scale(half) * numbers[0]);
    return sum;
}

// Asks for the weights of a chunk in time: what lies AHEAD_BYTES behind it, a share at each group.
struct Ahead {
    void group() {
        for (due += share; line < due; line += 64) __builtin_prefetch(line, 0, 3);
    }
    const uint8_t *line, *due;
    int share;  // bytes of a group
};

#if SIGNED
constexpr int VECTORS = PANEL / LANES;
#define INLINED __attribute__((always_inline))
// f(0), …, f(N - 1), of constants: in loops that are only unrolled later the compiler keeps sums in memory.
template <class F, int... I> INLINED inline void times_of(std::integer_sequence<int, I...>, F f) { (f(std::integral_constant<int, I>()), ...); }
template <int N, class F> INLINED inline void times(F f) { times_of(std::make_integer_sequence<int, N>(), f); }

// sums += Σ codes · inputs of a row over N steps, for all outputs of the panel.
template <int BITS, int LINES, int FROM, int N> INLINED inline void add_products(vi *sums, const vb (*codes)[STEPS][VECTORS], const int8_t *x) {
    // 15·255·2·4, 16·255·2·4 and 32·255·2·2 fit into sixteen bits.
    constexpr int MANY = BITS < 6 ? 4 : BITS == 6 ? 2 : 1;
    times<LINES>([&](auto line) INLINED {
        times<N / MANY>([&](auto part) INLINED {
            constexpr int FIRST = FROM + part * MANY;
            vs pairs[VECTORS];
            times<MANY>([&](auto t) INLINED {
                const vb four = splat_four(x + line * GROUP + 4 * (FIRST + t));
                times<VECTORS>([&](auto v) INLINED {
                    const vb code = codes[BITS == 8 ? line : 0][FIRST + t][v];
                    if constexpr (BITS == 8) {
                        sums[v] += words_of((vs)four, (vs)code);
                        asm("" : "+x"(sums[v]));  // or the compiler multiplies first and adds later, and spills
                    } else {
                        const vs some = pairs_of(four, code);
                        pairs[v] = t > 0 ? pairs[v] + some : some;
                        asm("" : "+x"(pairs[v]));
                    }
                });
            });
            if constexpr (BITS < 8) times<VECTORS>([&](auto v) INLINED { sums[v] += fours_of(pairs[v], line < LINES - 1 ? RATIO : 1); });
        });
    });
}

// Adds to `out` what a chunk brings. `shift`: how many groups of 32 share a scale, as a power of two; FINE: a group has two;
// LOWERED: there is more than products, `minima` times sums of inputs. Codes are unpacked once for all rows; products take
// them from memory, and so each step of a row's inputs serves all outputs while it is in a register: that is why inputs are
// the unsigned factors. LINES: the bytes of an input, or the words of two.
template <int BITS, int LINES, bool FINE, bool LOWERED>
void add_chunk(const uint8_t *w, const float *scales, const float *minima, int groups, int shift, Inputs x, int rows, Ahead ahead, float (*out)[PANEL]) {
    constexpr int HALVES_OF = FINE ? 2 : 1, N = STEPS / HALVES_OF;
    for (int g = 0; g < groups; g++, w += code_bytes(BITS)) {
        const int at = (FINE ? 2 * g : g >> shift) * PANEL;
        const float *scale = scales + at, *minimum = minima + at;
        const float *numbers = x.numbers + g * x.rows * NUMBERS;
        const int8_t *q = x.codes + g * x.rows * LINES * GROUP;
        vb codes[BITS == 8 ? 2 : 1][STEPS][VECTORS];
        vi start[2][VECTORS] = {};
        ahead.group();
        for (int v = 0; v < VECTORS; v++)
#pragma GCC unroll 8
            for (int t = 0; t < STEPS; t++) {
                const vb code = unpack<BITS>(w, v * LANES, t);
                if constexpr (BITS == 8) { codes[0][t][v] = (vb)((vs)code << 8 >> 8); codes[1][t][v] = (vb)((vs)code >> 8); }
                else codes[0][t][v] = code - uint8_t(middle(BITS));
            }
        if constexpr (BITS < 8)  // minus what the 128 bring
            for (int t = 0; t < STEPS; t += 4)
                for (int v = 0; v < VECTORS; v++) {
                    const vb four = codes[0][t][v] + codes[0][t + 1][v] + codes[0][t + 2][v] + codes[0][t + 3][v];
                    start[t / N][v] += fours_of(pairs_of(vb{} + uint8_t(128), four), LINES == 2 ? -RATIO - 1 : -1);
                }
        asm("" : "+r"(scale), "+r"(minimum));  // each of them one address, not one for each vector
        for (int r = 0; r < rows; r++, q += LINES * GROUP, numbers += NUMBERS) {
            vf sums[VECTORS];
            const float number = numbers[0];
            times<HALVES_OF>([&](auto half) INLINED {
                vi whole[VECTORS];
                times<VECTORS>([&](auto v) INLINED { whole[v] = start[half][v]; });
                add_products<BITS, LINES, half * N, N>(whole, codes, q);
                times<VECTORS>([&](auto v) INLINED {
                    if (half == 0) {
                        sums[v] = load<vf>(out[r] + v * LANES);
                        if (LOWERED) for (int h = 0; h < HALVES_OF; h++) sums[v] += load<vf>(minimum + h * PANEL + v * LANES) * numbers[1 + h];
                    }
                    sums[v] += __builtin_convertvector(whole[v], vf) * (load<vf>(scale + half * PANEL + v * LANES) * number);
                });
            });
            times<VECTORS>([&](auto v) INLINED { store(out[r] + v * LANES, sums[v]); });
        }
    }
}
#else
// The same: here a vector of outputs has its codes in registers.
template <int BITS, int BYTES, bool FINE, bool LOWERED>
void add_chunk(const uint8_t *w, const float *scales, const float *minima, int groups, int shift, Inputs x, int rows, Ahead ahead, float (*out)[PANEL]) {
    constexpr int N = FINE ? STEPS / 2 : STEPS;
    for (int g = 0; g < groups; g++, w += code_bytes(BITS)) {
        const int at = (FINE ? 2 * g : g >> shift) * PANEL;
        ahead.group();
        for (int v = 0; v < PANEL; v += LANES) {
            vb codes[STEPS];
#pragma GCC unroll 8
            for (int t = 0; t < STEPS; t++) codes[t] = unpack<BITS>(w, v, t);
            const auto number = [&](const float *from, int half) { return FINE || !half ? load<vf>(from + at + half * PANEL + v) : vf{}; };
            const vf scale[] = {number(scales, 0), number(scales, 1)}, minimum[] = {number(minima, 0), number(minima, 1)};
            const int8_t *q = x.codes + g * x.rows * BYTES * GROUP;
            const float *numbers = x.numbers + g * x.rows * NUMBERS;
            for (int r = 0; r < rows; r++, q += BYTES * GROUP, numbers += NUMBERS) {
                const auto whole = [&](int half) {
                    return whole_products<BITS, BYTES, N>(vi{}, [&](int t) { return codes[half * N + t]; },
                                                          [&](int byte, int t) { return splat_four(q + byte * GROUP + 4 * (half * N + t)); });
                };
                store(out[r] + v, add_group<FINE, LOWERED>(load<vf>(out[r] + v), whole, [&](int half) { return scale[half]; }, [&](int half) { return minimum[half]; }, numbers));
            }
        }
    }
}
#endif

// The scales (or minima) of a vector of outputs, from number `first` on, where `from` says how the chunk's are written.
template <int SCALES, class Level> inline vf number_of(const uint8_t *from, const float *super, int i, int first) {
    if constexpr (SCALES == LEVELS) return load<vf>(super + first) * widened<Level>(from + 2 * PANEL + i * PANEL + first);
    if constexpr (SCALES == HALVES) return halves(from + 2 * (i * PANEL + first));
    return load<vf>(from + 4 * (i * PANEL + first));
}

// The same for one row, to the last bit: scales are read where they are needed, inputs of one byte once for all outputs.
template <int BITS, int BYTES, bool FINE, bool LOWERED, int SCALES>
void add_chunk_to_one(const uint8_t *w, const uint8_t *scales, const uint8_t *minima, int groups, int shift, float less, Inputs x, Ahead ahead, float *out) {
    constexpr int N = FINE ? STEPS / 2 : STEPS;
    alignas(64) float super[PANEL], super_minimum[PANEL];
    if (SCALES == LEVELS)
        for (int v = 0; v < PANEL; v += LANES) {
            store(super + v, halves(scales + 2 * v));
            if (minima) store(super_minimum + v, halves(minima + 2 * v) * -1.f);
        }
    vf sums[PANEL / LANES];
    for (int v = 0; v < PANEL / LANES; v++) sums[v] = load<vf>(out + v * LANES);
    for (int g = 0; g < groups; g++, w += code_bytes(BITS)) {
        const int8_t *q = x.codes + g * x.rows * BYTES * GROUP;
        const float *numbers = x.numbers + g * x.rows * NUMBERS;
        const int at = FINE ? 2 * g : g >> shift;
        vb fours[STEPS];
        for (int t = 0; t < STEPS; t++) fours[t] = splat_four(q + 4 * t);
        vi start[2] = {};  // codes are not made signed here: it would take an operation for each step
        if (BITS < 8 && middle(BITS))
            for (int half = 0; half < (FINE ? 2 : 1); half++) start[half] = __builtin_convertvector(splat(numbers[3 + half] * float(-middle(BITS))), vi);
        ahead.group();
        for (int v = 0; v < PANEL / LANES; v++) {
            const int first = v * LANES;
            const auto whole = [&](int half) {
                return whole_products<BITS, BYTES, N>(start[half], [&](int t) { return unpack<BITS>(w, first, half * N + t); }, [&](int byte, int t) {
                    return BYTES == 1 ? fours[half * N + t] : splat_four(q + byte * GROUP + 4 * (half * N + t));
                });
            };
            const auto scale = [&](int half) { return number_of<SCALES, int8_t>(scales, super, at + half, first); };
            const auto minimum = [&](int half) {
                const vf shifted = scale(half) * less;
                return minima ? shifted + number_of<SCALES, uint8_t>(minima, super_minimum, at + half, first) : shifted;
            };
            sums[v] = add_group<FINE, LOWERED>(sums[v], whole, scale, minimum, numbers);
        }
    }
    for (int v = 0; v < PANEL / LANES; v++) store(out + v * LANES, sums[v]);
}

using AddChunk = void (*)(const uint8_t *, const float *, const float *, int, int, Inputs, int, Ahead, float (*)[PANEL]);
using AddChunkToOne = void (*)(const uint8_t *, const uint8_t *, const uint8_t *, int, int, float, Inputs, Ahead, float *);
struct ChunkKernels { AddChunk some; AddChunkToOne one; };
template <int BITS, int BYTES, bool FINE, bool LOWERED> ChunkKernels chunk_kernels(int scales) {
    return {add_chunk<BITS, SIGNED && BITS == 8 ? 2 : BYTES, FINE, LOWERED>, scales == LEVELS ? add_chunk_to_one<BITS, BYTES, FINE, LOWERED, LEVELS> : scales == HALVES
            ? add_chunk_to_one<BITS, BYTES, FINE, LOWERED, HALVES> : add_chunk_to_one<BITS, BYTES, FINE, LOWERED, FLOATS>};
}
template <int BITS, int BYTES, bool FINE> ChunkKernels chunk_kernels(const Written &how) {
    if (!how.minimum && how.offset == middle(BITS)) return chunk_kernels<BITS, BYTES, FINE, !middle(BITS)>(how.scales);  // a middle of 0 is no format's
    return chunk_kernels<BITS, BYTES, FINE, true>(how.scales);
}
template <int BITS> ChunkKernels chunk_kernels(const Written &how, bool precise) {
    if (how.group < GROUP) return precise ? chunk_kernels<BITS, 2, true>(how) : chunk_kernels<BITS, 1, true>(how);
    return precise ? chunk_kernels<BITS, 2, false>(how) : chunk_kernels<BITS, 1, false>(how);
}
inline ChunkKernels chunk_kernels(const Written &how, bool precise) {
    return how.bits == 4 ? chunk_kernels<4>(how, precise) : how.bits == 5 ? chunk_kernels<5>(how, precise)
         : how.bits == 6 ? chunk_kernels<6>(how, precise) : chunk_kernels<8>(how, precise);
}

// The same for fp8 numbers, with inputs [rows][stride] as they are.
inline vf e4m3(const uint8_t *p) {
    typedef uint8_t vn __attribute__((vector_size(LANES)));
    const vh wide = __builtin_convertvector(load<vn>(p), vh);
    const vh half = (wide & 128) << 8 | (wide & 127) << 7;
    return halves((const uint8_t *)&half) * 256.f;
}
inline void add_fp8_chunk(const uint8_t *w, const float *scales, int groups, int shift, const bf16 *x, int64_t stride, int rows, Ahead ahead, float (*out)[PANEL]) {
    for (int g = 0; g < groups; g++, w += code_bytes(8)) {
        alignas(64) float wide[GROUP][PANEL];
        ahead.group();
        for (int k = 0; k < GROUP; k++) for (int v = 0; v < PANEL; v += LANES) store(wide[k] + v, e4m3(w + k * PANEL + v));
        for (int r = 0; r < rows; r++) {
            vf sums[PANEL / LANES] = {};
            for (int k = 0; k < GROUP; k++) {
                const float factor = widen(x[r * stride + g * GROUP + k]);
                for (int v = 0; v < PANEL / LANES; v++) sums[v] += load<vf>(wide[k] + v * LANES) * factor;
            }
            for (int v = 0; v < PANEL / LANES; v++)
                store(out[r] + v * LANES, load<vf>(out[r] + v * LANES) + sums[v] * load<vf>(scales + (g >> shift) * PANEL + v * LANES));
        }
    }
}

// ---- a whole product

// Inputs of all rows, for parts of one order.
struct Prepared {
    Inputs inputs{};
    Buffer<int8_t> codes;
    Buffer<float> numbers;

    void fill(Team &team, const int32_t *order, bool fine, bool wide, int bytes, const bf16 *x, int64_t in, int rows) {
        inputs = {codes.get(in * rows * (wide ? 2 : bytes)), numbers.get(in / GROUP * rows * NUMBERS), rows};
        const auto quantise_row = bytes == 2 ? quantise<2> : quantise<1>;
        const int share = rows * in <= QUANTISED_ALONE ? rows : std::max(1, rows / (8 * team.size));
        team.each(rows, share, [&](int first, int last) {
            for (int r = first; r < last; r++) quantise_row(x + r * in, order, fine, wide, in, rows, r, codes.data, numbers.data);
        });
    }
};

// Of a panel, all alike but the last, which may be shorter.
struct Chunk {
    Chunk() = default;
    Chunk(const Written &how, int count)
        : groups(groups_in(how, count)), fours(count / GROUP), numbers(number_bytes(how, count)), bytes(numbers + fours * code_bytes(how.bits)) {}
    int groups, fours, numbers, bytes;  // sharing a scale; of GROUP inputs; in front of the codes, in all
};

// What one part is multiplied with: prepared once for all its panels, as divisions take longer than a group's products.
struct Kernels {
    Kernels() = default;
    Kernels(const Part &part, int64_t in, int bytes)
        : part(&part), in(in), bytes(bytes), whole(part.how, CHUNK), rest(part.how, std::max(GROUP, int(in % CHUNK))),
          panel(panel_bytes(part.how, in)), kernels(chunk_kernels(part.how, bytes == 2)),
          less(float(middle(part.how.bits) - part.how.offset)) {
        while (GROUP << shift < std::min(part.how.group, CHUNK)) shift++;
    }

    // The products of rows row … with panel number `index`.
    void multiply(int index, const Inputs &x, const bf16 *raw, int64_t row, int rows, float (*out)[PANEL]) const {
        const uint8_t *w = part->w + index * panel;
        std::memset(out, 0, rows * sizeof out[0]);
        for (int64_t from = 0; from < in; from += CHUNK) {
            const Chunk &chunk = from + CHUNK <= in ? whole : rest;
            add(chunk, w, from, x, raw, row, rows, out);
            w += chunk.bytes;
        }
    }

    const Part *part = nullptr;
    int64_t in = 0;

private:
    void add(const Chunk &chunk, const uint8_t *w, int64_t from, const Inputs &x, const bf16 *raw, int64_t row, int rows, float (*out)[PANEL]) const {
        const Written &how = part->how;
        const uint8_t *const codes = w + chunk.numbers, *const lows = how.minimum ? w + chunk.numbers / 2 : nullptr;
        const Ahead ahead{w + AHEAD_BYTES, w + AHEAD_BYTES, chunk.bytes / chunk.fours};
        const int64_t at = from / GROUP * x.rows + row;
        const Inputs here{x.codes + at * (as_words(how.bits, x.rows) ? 2 : bytes) * GROUP, x.numbers + at * NUMBERS, x.rows};
        if (x.rows == 1 && how.type != FP8) return kernels.one(codes, w, lows, chunk.fours, shift, less, here, ahead, out[0]);
        alignas(64) float scales[CHUNK / FINEST * PANEL], minima[CHUNK / FINEST * PANEL];
        numbers_of<int8_t>(how, chunk.groups, 1.f, w, scales);
        if (how.type == FP8) return add_fp8_chunk(codes, scales, chunk.fours, shift, raw + row * in + from, in, rows, ahead, out);
        if (lows) numbers_of<uint8_t>(how, chunk.groups, -1.f, lows, minima);
        for (int i = 0; i < chunk.groups * PANEL; i += LANES) {
            const vf shifted = load<vf>(scales + i) * less;
            store(minima + i, lows ? shifted + load<vf>(minima + i) : shifted);
        }
        kernels.some(codes, scales, minima, chunk.fours, shift, here, rows, ahead, out);
    }

    int bytes = 1;
    Chunk whole, rest;
    int64_t panel = 0;
    ChunkKernels kernels{};
    float less = 0;
    int shift = 0;
};

constexpr int PARTS = 3;  // of a linear layer, at most
inline Prepared *prepared_inputs() { thread_local Prepared all[PARTS]; return all; }

// As `products` in products.h.
template <class Write> void packed_products(Team &team, const Linear &l, const bf16 *x, int rows, Write write) {
    Prepared *prepared = prepared_inputs();
    const int bytes = l.precise ? 2 : 1, most = PACKED_ROWS / bytes;
    const Inputs *inputs[PARTS] = {};
    Kernels kernels[PARTS];
    int panels = 0;
    for (int i = 0; i < l.count; i++) {
        const Part &part = l.parts[i];
        const auto alike = [&](const Part &other) {
            return other.how.type != FP8 && other.order == part.order && (other.how.group < GROUP) == (part.how.group < GROUP)
                && as_words(other.how.bits, rows) == as_words(part.how.bits, rows);
        };
        panels += part.panels;
        kernels[i] = Kernels(part, l.in, bytes);
        inputs[i] = &prepared[i].inputs;
        if (part.how.type == FP8) continue;
        const Part *same = std::find_if(l.parts, l.parts + i, alike);
        if (same < l.parts + i) inputs[i] = inputs[same - l.parts];
        else prepared[i].fill(team, part.order, part.how.group < GROUP, as_words(part.how.bits, rows), bytes, x, l.in, rows);
    }
    const int chunk = int(std::max<int64_t>(1, std::min<int64_t>(PANELS_BYTES / panel_bytes(l.parts[0].how, l.in), panels / (8 * team.size))));
    team.each(panels, chunk, [&](int first, int last) {
        alignas(64) float out[PACKED_ROWS][PANEL];
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
