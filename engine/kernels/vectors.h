// Vectors of floats and of pairs of bf16, sized for the CPU that compiles this file, and AMX tiles where it has them.
//
// Without intrinsics the compiler's vector extensions are used, so that any CPU works.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif
#if defined(__AMX_BF16__) && defined(__AVX512F__) && defined(__linux__)
#define WITH_AMX
#include <sys/syscall.h>
#include <unistd.h>
#endif

// A function of which the compiler keeps one copy, so that every call rounds alike: inlined copies may fuse
// multiplications and additions differently.
#ifdef __clang__
#define ONE_COPY __attribute__((noinline))
#else
#define ONE_COPY __attribute__((noinline, noclone))
#endif

namespace {

using bf16 = uint16_t;
// AVX2 has sixteen registers of eight floats. For wider vectors compilers generate slow code, and loops written for 32
// registers spill; such loops have a variant for AVX2.
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr bool AVX2_ONLY = true;
#else
constexpr bool AVX2_ONLY = false;
#endif
constexpr int LANES = AVX2_ONLY ? 8 : 16, PANEL = 32, BLOCK = 16;
constexpr int STRIPE = AVX2_ONLY ? PANEL / 2 : PANEL;  // outputs of a bf16 panel stored together
typedef float vf __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));
typedef uint64_t vq __attribute__((vector_size(4 * LANES)));  // half as many elements
typedef uint8_t vb __attribute__((vector_size(4 * LANES)));
typedef int16_t vs __attribute__((vector_size(4 * LANES)));
typedef float vf_half __attribute__((vector_size(2 * LANES)));

constexpr float MINUS_INFINITY = -INFINITY;

template <class V>
inline V load(const void *p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class V>
inline void store(void *p, V v) {
    std::memcpy(p, &v, sizeof v);
}
inline vf splat(float x) { return x - vf{}; }

inline vi lane_numbers() {
    vi v;
    for (int i = 0; i < LANES; i++) v[i] = i;
    return v;
}
inline vf shuffle(vf v, vi from) {
#ifdef __clang__
    vf to;
    for (int i = 0; i < LANES; i++) to[i] = v[from[i]];
    return to;
#else
    return __builtin_shuffle(v, from);
#endif
}

inline bf16 to_bf16(float x) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
inline vh to_bf16(vf x) {
#ifdef __AVX512BF16__
    return (vh)_mm512_cvtneps_pbh((__m512)x);
#endif
    vu u = (vu)x;
    return __builtin_convertvector((u + 0x7fff + (u >> 16 & 1)) >> 16, vh);
}
inline float to_float(bf16 x) {
    uint32_t u = uint32_t(x) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
}

// Returns sums + w[i].low · x.low + w[i].high · x.high for a vector of pairs of bf16.
inline vf dot(vf sums, vu w, uint32_t x) {
#ifdef __AVX512BF16__
    return (vf)_mm512_dpbf16_ps((__m512)sums, (__m512bh)w, (__m512bh)_mm512_set1_epi32(int(x)));
#else
    float lo = to_float(bf16(x)), hi = to_float(bf16(x >> 16));
    sums += (vf)(w << 16) * lo;
    return sums + (vf)(w & 0xffff0000u) * hi;
#endif
}

// Returns the upper halves of pairs as floats. SHIFT takes one more instruction and one register less.
template <bool SHIFT>
inline vf high_halves(vu pairs) {
    if (!SHIFT) return (vf)(pairs & 0xffff0000u);
    pairs >>= 16;
#ifdef __AVX2__
    asm("" : "+x"(pairs));
#endif
    return (vf)(pairs << 16);
}

// Does what `dot` does, in the same order, for R rows and N vectors of pairs; vector j is at w + at(j), and pair(r)
// points to two floats of row r. Sums stay in registers.
template <int R, int N, class At, class Pair>
inline void dots(vf (&sums)[R][N], const bf16 *w, At at, Pair pair) {
    constexpr bool SHIFT = R * N == 12;
    for (int half = 0; half < 2; half++) {
        const auto part = [&](int j) {
            const vu pairs = load<vu>(w + at(j));
            return half ? high_halves<SHIFT>(pairs) : (vf)(pairs << 16);
        };
        vf parts[N];
        for (int j = 0; j < N; j++) parts[j] = part(j);
        for (int r = 0; r < R; r++) {
            const vf x = splat(pair(r)[half]);
            for (int j = 0; j < N; j++) sums[r][j] += parts[j] * x;
        }
        asm volatile("" ::: "memory");  // or the compiler loads the second half early and spills registers
    }
}

inline void to_float(const bf16 *from, int n, float *to) {
    for (int i = 0; i < n; i++) to[i] = to_float(from[i]);
}

// Elementwise maximum and minimum: compilers make two instructions of `a > b ? a : b`.
inline vf max_of(vf a, vf b) {
#if defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return a > b ? a : b;
#endif
}
inline vf min_of(vf a, vf b) {
#if defined(__AVX512F__)
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return a < b ? a : b;
#endif
}

inline float sum_lanes(vf v) {
    for (int step = LANES / 2; step; step /= 2) v += shuffle(v, lane_numbers() ^ step);
    return v[0];
}
inline float max_lane(vf v) {
    for (int step = LANES / 2; step; step /= 2) {
        const vf other = shuffle(v, lane_numbers() ^ step);
        v = v > other ? v : other;
    }
    return v[0];
}

// Returns whether any lane of a comparison is true.
inline bool any(vi truth) {
#ifdef __AVX512DQ__
    return _mm512_movepi32_mask((__m512i)truth);
#else
    uint64_t words[LANES / 2];
    store(words, truth);
    uint64_t all = 0;
    for (uint64_t word : words) all |= word;
    return all;
#endif
}

// Computes e^x to 2 ulp for x ≤ 88; 0 below -87.
inline vf exponential(vf x) {
    const vf magic = splat(12582912.f);
    vf kept = x < -87.f ? splat(-87.f) : x;
    vf n = (kept * 1.44269504f + magic) - magic;
    vf r = kept - n * 0.693359375f + n * 2.12194440e-4f;
    vf p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    vf y = p * r * r + r + 1.f;
    vi bits = (vi)y + (__builtin_convertvector(n, vi) << 23);
    return x < -87.f ? vf{} : (vf)bits;
}
inline float exponential(float x) { return exponential(splat(x))[0]; }

// Computes log x to 2 ulp for normal positive x.
inline vf logarithm(vf x) {
    vi bits = (vi)x;
    vi exponent = (bits >> 23) - 126;
    vf m = (vf)((bits & 0x007fffff) | 0x3f000000);  // in [0.5, 1)
    vi small = m < 0.707106781f;
    exponent += small;  // true is -1
    m = (small ? m + m : m) - 1.f;
    const vf e = __builtin_convertvector(exponent, vf), z = m * m;
    vf p = splat(7.0376836292e-2f);
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    vf y = p * m * z + e * -2.12194440e-4f - 0.5f * z;
    return m + y + e * 0.693359375f;
}

// Computes log(1 - u) for u in (0, 1), also accurate for small u: log(v)·(-u)/(v - 1), where v = 1 - u as rounded.
inline vf log_one_minus(vf u) {
    const vf v = 1.f - u, off = v - 1.f;
    const vf safe = off == 0.f ? splat(-1.f) : off;
    return off == 0.f ? -u : logarithm(v) * (-u / safe);
}

inline void pause() {
#ifdef __x86_64__
    _mm_pause();
#endif
}

// AMX: products of tiles, which are sixteen rows of 64 bytes.

constexpr int AMX_ROWS = 16, AMX_PAIRS = 16;  // rows of a tile of inputs; pairs of inputs in a tile of weights
#ifdef WITH_AMX
// The tiles' state is large: a process must request it from the system.
const bool HAS_AMX = syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* XTILEDATA */) == 0;
thread_local int amx_setup = 0;  // how this thread's tiles are configured; 0: not at all

// Configures this thread's tiles. For products: 0 to 3 hold sums and 4 inputs, of `rows` rows each; 5 to 7 hold
// weights. For attention: 0 and 1 hold sums, 2 and 3 keys, 4 queries, 5 softmax weights, 6 and 7 a block's values.
inline void configure_amx(int rows, bool attending = false) {
    const int wanted = rows + attending * 2 * AMX_ROWS;
    if (amx_setup == wanted) return;
    struct alignas(64) {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } shape{};
    shape.palette = 1;
    for (int t = 0; t < 8; t++) {
        shape.bytes[t] = 64;
        shape.rows[t] = uint8_t(t < 5 ? rows : AMX_PAIRS);
    }
    if (attending) {
        shape.rows[2] = shape.rows[3] = AMX_PAIRS;
        shape.rows[5] = uint8_t(rows);
        shape.bytes[5] = 2 * BLOCK;
        shape.rows[6] = shape.rows[7] = BLOCK / 2;
    }
    // Not _tile_loadconfig: GCC 12 declares only eight bytes of `shape` as read.
    asm volatile("ldtilecfg %0" ::"m"(shape));
    amx_setup = wanted;
}
// Releases the tiles before this thread runs other code, which may use AMX too, or sleeps.
inline void release_amx() {
    if (!amx_setup) return;
    _tile_release();
    amx_setup = 0;
}
#else
constexpr bool HAS_AMX = false;
inline void configure_amx(int) {}
inline void release_amx() {}
#endif

}  // namespace
