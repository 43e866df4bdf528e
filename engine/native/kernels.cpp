// A pass of any sub-network of a Llama-like decoder over bf16 weights and a bf16 K/V cache, in one call.
//
// Every sum runs in an order that depends on the row alone: not on how many rows share the pass, on the split among
// threads, or on what else the batch holds. A token's logits are therefore the same to the last bit in plain decoding
// and in verification, alone and in a batch.
//
// Layouts (bf16 throughout):
//   weights [out/32][in/2][32][2]: panels of 32 outputs, pairs of inputs together, as dot-product instructions want.
//   cache   [layers][slabs][kv_heads][blocks of 16 positions][K, V]: K as [head_dim/2][16][2], V as [8][head_dim][2];
//           a slab is a multiple of 64 positions.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __x86_64__
#include <immintrin.h>
#endif
#if defined(__AMX_BF16__) && defined(__AVX512F__) && defined(__linux__)
#define WITH_TILES
#include <sys/syscall.h>
#include <unistd.h>
#endif

// A function whose every call rounds the same way: the compiler fits none of them to its place.
#ifdef __clang__
#define ONE_COPY __attribute__((noinline))
#else
#define ONE_COPY __attribute__((noinline, noclone))
#endif

namespace {

using bf16 = uint16_t;
// AVX2 has sixteen registers of eight floats: compilers make slow code of wider vectors, and spill what the loops for
// thirty-two registers keep.
#if defined(__AVX2__) && !defined(__AVX512F__)
constexpr bool NARROW = true;
#else
constexpr bool NARROW = false;
#endif
constexpr int LANES = NARROW ? 8 : 16, PANEL = 32, BLOCK = 16;
typedef float vf __attribute__((vector_size(4 * LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * LANES)));
typedef uint64_t vq __attribute__((vector_size(4 * LANES)));  // half as many
typedef float vf_half __attribute__((vector_size(2 * LANES)));

constexpr int TILE = 64;         // positions whose scores are computed before they are weighed
constexpr int PART = 1024;       // positions that are summed up on their own; what threads may share out
constexpr int UNIT_ROWS = 16;    // rows of a request that read a tile together
constexpr int SPLIT_ROWS = 32;   // most rows of a pass whose contexts are shared out in parts
constexpr int SPINS = 20000;     // of a helper before it sleeps
constexpr int PATIENCE = 4096;   // spins of the caller before it sleeps, waiting for a helper
constexpr int EAGER = 200;       // of them without a pause: most waits are over before one would be
constexpr int LIGHT = 4096;      // numbers to touch that are not worth sharing out
constexpr int NEAR = 4096;       // weights, 8 KB, that many rows ask for before they need them
constexpr int64_t SMALL = 4 << 20;  // bytes of a layer up to which threads may take rows instead of shares of it
constexpr float NEVER = -INFINITY;

template <class V> inline V load(const void *p) { V v; std::memcpy(&v, p, sizeof v); return v; }
template <class V> inline void store(void *p, V v) { std::memcpy(p, &v, sizeof v); }
inline vf splat(float x) { return x - vf{}; }

inline vi lanes() {
    vi v;
    for (int i = 0; i < LANES; i++) v[i] = i;
    return v;
}
inline vf shuffled(vf v, vi from) {
#ifdef __clang__
    vf to;
    for (int i = 0; i < LANES; i++) to[i] = v[from[i]];
    return to;
#else
    return __builtin_shuffle(v, from);
#endif
}

inline bf16 narrow(float x) {
    uint32_t u; std::memcpy(&u, &x, 4);
    return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
inline vh narrow(vf x) {
#ifdef __AVX512BF16__
    return (vh)_mm512_cvtneps_pbh((__m512)x);
#endif
    vu u = (vu)x;
    return __builtin_convertvector((u + 0x7fff + (u >> 16 & 1)) >> 16, vh);
}
inline float widen(bf16 x) { uint32_t u = uint32_t(x) << 16; float f; std::memcpy(&f, &u, 4); return f; }

// sums + w[i].lo · x.lo + w[i].hi · x.hi for a vector of pairs of bf16.
inline vf dot(vf sums, vu w, uint32_t x) {
#ifdef __AVX512BF16__
    return (vf)_mm512_dpbf16_ps((__m512)sums, (__m512bh)w, (__m512bh)_mm512_set1_epi32(int(x)));
#else
    float lo = widen(bf16(x)), hi = widen(bf16(x >> 16));
    sums += (vf)(w << 16) * lo;
    return sums + (vf)(w & 0xffff0000u) * hi;
#endif
}

// The upper halves of pairs, as floats. A shift more spares a register.
template <bool SHIFT> inline vf upper(vu pairs) {
    if (!SHIFT) return (vf)(pairs & 0xffff0000u);
    pairs >>= 16;
#ifdef __AVX2__
    asm("" : "+x"(pairs));
#endif
    return (vf)(pairs << 16);
}

// What `dot` does, in the same order, for R rows and N vectors of pairs each, number j at w + at(j), in so few
// registers that sums need not leave theirs. `pair(r)` are the two floats of a row.
template <int R, int N, class At, class Pair> inline void dots(vf (&sums)[R][N], const bf16 *w, At at, Pair pair) {
    constexpr bool SHIFT = R * N == 12;
    for (int half = 0; half < 2; half++) {
        const auto part = [&](int j) {
            const vu pairs = load<vu>(w + at(j));
            return half ? upper<SHIFT>(pairs) : (vf)(pairs << 16);
        };
        vf parts[N];
        for (int j = 0; j < N; j++) parts[j] = part(j);
        for (int r = 0; r < R; r++) {
            const vf x = splat(pair(r)[half]);
            for (int j = 0; j < N; j++) sums[r][j] += parts[j] * x;
        }
        asm volatile("" ::: "memory");  // or the compiler loads the other half early, and spills
    }
}

inline void widen(const bf16 *from, int n, float *to) {
    for (int i = 0; i < n; i++) to[i] = widen(from[i]);
}

inline float total(vf v) {
    for (int step = LANES / 2; step; step /= 2) v += shuffled(v, lanes() ^ step);
    return v[0];
}
inline float highest(vf v) {
    for (int step = LANES / 2; step; step /= 2) {
        const vf other = shuffled(v, lanes() ^ step);
        v = v > other ? v : other;
    }
    return v[0];
}

// Whether any lane of a comparison is true.
inline bool any(vi truth) {
#ifdef __AVX512DQ__
    return _mm512_movepi32_mask((__m512i)truth);
#else
    uint64_t words[LANES / 2]; store(words, truth);
    uint64_t all = 0;
    for (uint64_t word : words) all |= word;
    return all;
#endif
}

// e^x to 2 ulp for x ≤ 88; 0 below -87.
inline vf exponential(vf x) {
    const vf magic = splat(12582912.f);
    vf kept = x < -87.f ? splat(-87.f) : x;
    vf n = (kept * 1.44269504f + magic) - magic;
    vf r = kept - n * 0.693359375f + n * 2.12194440e-4f;
    vf p = splat(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f; p = p * r + 8.3334519073e-3f; p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f; p = p * r + 5.0000001201e-1f;
    vf y = p * r * r + r + 1.f;
    vi bits = (vi)y + (__builtin_convertvector(n, vi) << 23);
    return x < -87.f ? vf{} : (vf)bits;
}
inline float exponential(float x) { return exponential(splat(x))[0]; }

// log x to 2 ulp for normal positive x.
inline vf logarithm(vf x) {
    vi bits = (vi)x;
    vi exponent = (bits >> 23) - 126;
    vf m = (vf)((bits & 0x007fffff) | 0x3f000000);  // in [0.5, 1)
    vi small = m < 0.707106781f;
    exponent += small;  // true is -1
    m = (small ? m + m : m) - 1.f;
    const vf e = __builtin_convertvector(exponent, vf), z = m * m;
    vf p = splat(7.0376836292e-2f);
    p = p * m - 1.1514610310e-1f; p = p * m + 1.1676998740e-1f; p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f; p = p * m - 1.6668057665e-1f; p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f; p = p * m + 3.3333331174e-1f;
    vf y = p * m * z + e * -2.12194440e-4f - 0.5f * z;
    return m + y + e * 0.693359375f;
}

// log(1 - u) for u in (0, 1), exact where u is small: log(v)·(-u)/(v - 1) with v = 1 - u as rounded.
inline vf log_of_rest(vf u) {
    const vf v = 1.f - u, off = v - 1.f;
    const vf safe = off == 0.f ? splat(-1.f) : off;
    return off == 0.f ? -u : logarithm(v) * (-u / safe);
}

inline void pause() {
#ifdef __x86_64__
    _mm_pause();
#endif
}

// ---- tiles (AMX): sixteen rows of 64 bytes each, and their products

constexpr int TILE_ROWS = 16, TILE_PAIRS = 16;  // rows of inputs, and pairs of inputs in a tile of weights
#ifdef WITH_TILES
// Their state is large: a process has to ask for it.
const bool TILES = syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* XTILEDATA */) == 0;
thread_local int tiles_for = 0;  // what this thread has its tiles set up for

// From here on tiles 0 to 3 are for sums and 4 for inputs, all of so many rows; 5 to 7 for weights. Or, where rows attend,
// 0 and 1 are for sums, 2 and 3 for keys, 4 for queries, 5 for how values are weighed, 6 and 7 for a block's values.
inline void tiles(int rows, bool attending = false) {
    const int wanted = rows + attending * 2 * TILE_ROWS;
    if (tiles_for == wanted) return;
    struct alignas(64) { uint8_t palette, start, reserved[14]; uint16_t bytes[16]; uint8_t rows[16]; } shape{};
    shape.palette = 1;
    for (int t = 0; t < 8; t++) { shape.bytes[t] = 64; shape.rows[t] = uint8_t(t < 5 ? rows : TILE_PAIRS); }
    if (attending) {
        shape.rows[2] = shape.rows[3] = TILE_PAIRS;
        shape.rows[5] = uint8_t(rows); shape.bytes[5] = 2 * BLOCK;
        shape.rows[6] = shape.rows[7] = BLOCK / 2;
    }
    asm volatile("ldtilecfg %0" ::"m"(shape));  // the header's function names eight bytes of it as read, GCC 12's does
    tiles_for = wanted;
}
// Before others use this thread, who may have plans of their own with them.
inline void leave_tiles() {
    if (!tiles_for) return;
    _tile_release();
    tiles_for = 0;
}
#else
constexpr bool TILES = false;
inline void tiles(int) {}
inline void leave_tiles() {}
#endif

// ---- threads: one team; whoever of it is running takes shares of what is to be done

// Units of work first … last - 1 for one thread, and the first of those that it is likely to take next, -1 if none are
// left. The caller goes forward from the first, helpers back from the last: what each reads lies side by side, and it is
// known where the next product's will.
struct Share { int first, last, after; bool back; };

// The caller never waits for a helper to begin, only for shares that a helper has begun: where something else has its
// core, the caller does all the work itself.
class Team {
public:
    explicit Team(int size) : size(size) {
        try {
            for (int i = 1; i < size; i++) threads.emplace_back([this] { help(); });
        } catch (const std::system_error &) {
        }  // no more are to be had: nobody waits for them
    }
    ~Team() {
        { std::lock_guard<std::mutex> hold(lock); leaving = true; }
        wake.notify_all();
        for (auto &t : threads) t.join();
    }
    // Wakes who sleeps: calls of `each` follow, or their shares take so long that one fell asleep meanwhile.
    void begin() {
        if (asleep.load(std::memory_order_relaxed)) wake.notify_all();  // one that is just falling asleep wakes the next time
    }
    // work(first, last), or work(share), for all of [0, n), in shares of `share`; returns when all of it is done. Where some
    // take longer than others they are not `even`, and taken one by one.
    template <class Work> void each(int n, int share, Work &&work, bool even = true) {
        const auto hand = [&](const Share &s) {
            if constexpr (std::is_invocable_v<Work, int, int>) work(s.first, s.last); else work(s);
        };
        const int shares = (n + share - 1) / share;
        if (size == 1 || shares < 2) { if (n > 0) hand({0, n, -1, false}); return; }
        auto one = [&](const Taken &t) {
            hand({t.first * share, std::min(n, t.last * share), t.after < 0 ? -1 : t.after * share, t.back});
        };
        call.store([](void *w, const Taken &t) { (*static_cast<decltype(one) *>(w))(t); }, std::memory_order_relaxed);
        argument.store(&one, std::memory_order_relaxed);
        helped.store(0, std::memory_order_relaxed);
        most.store(even ? shares : 1, std::memory_order_relaxed);
        int own = even ? at_first(shares) : 1;
        open.store(uint64_t(NONE + shares) << 32 | (NONE + own), std::memory_order_release);
        begin();
        one({0, own, own, false});
        for (Taken t; (t = take(false, 1)).last > 0; own++) one(t);
        for (int i = 0; helped.load(std::memory_order_acquire) != shares - own; i++) {
            // A helper that lost its core gets one that sleeps.
            if (i < EAGER) continue;
            if (i < PATIENCE) pause(); else std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }
    // Shares that the caller begins with, and those that a helper takes of what is left: the fewer turns they take, the less
    // often the word that both change goes from core to core.
    int at_first(int shares) const { return std::max(1, shares * 3 / (4 * size)); }
    int of_left(int left) const { return std::max(1, left / size); }
    const int size;

private:
    struct Taken { int first, last, after; bool back; };  // shares; of the next ones, the first
    static constexpr uint32_t NONE = 1 << 20;  // taken of either end, at first: those who find nothing left count on

    // `count` shares that are nobody's yet, or fewer; a `last` of 0 if none are. The first that is left and the one behind the
    // last are one word: what is taken belongs to the work that is open then, and `each` does not return before it is done.
    Taken take(bool back, int count) {
        const uint64_t n = count, found = back ? open.fetch_sub(n << 32, std::memory_order_acq_rel) : open.fetch_add(n, std::memory_order_acq_rel);
        const int first = int(uint32_t(found) - NONE), end = int(uint32_t(found >> 32) - NONE), rest = end - first - count;
        if (first >= end) return {0, 0, -1, back};
        if (back) return {std::max(first, end - count), end, rest > 0 ? end - count - of_left(rest) : -1, true};
        return {first, std::min(first + count, end), rest > 0 ? first + count : -1, false};
    }
    int left() const {
        const uint64_t found = open.load(std::memory_order_relaxed);
        return int(uint32_t(found >> 32) - uint32_t(found));
    }
    void help() {
        for (;;) {
            for (int i = 0; left() <= 0 && i < SPINS; i++) {
                if (i < EAGER) continue;
                pause();
                if (i % 256 == 255) std::this_thread::yield();
            }
            if (left() <= 0) {
                leave_tiles();
                std::unique_lock<std::mutex> hold(lock);
                if (leaving) return;
                asleep++;
                wake.wait(hold);
                asleep--;
                if (leaving) return;
            }
            for (int some; (some = left()) > 0;) {
                const Taken t = take(true, std::min(of_left(some), most.load(std::memory_order_relaxed)));
                if (!t.last) break;
                call.load(std::memory_order_relaxed)(argument.load(std::memory_order_relaxed), t);
                helped.fetch_add(t.last - t.first, std::memory_order_release);
            }
        }
    }
    std::vector<std::thread> threads;
    std::mutex lock;
    std::condition_variable wake;
    std::atomic<int> asleep{0};
    bool leaving = false;
    alignas(64) std::atomic<uint64_t> open{0};  // of the work in hand: the end of the shares that are left, and the first
    alignas(64) std::atomic<int> helped{0};     // shares that others than the caller have done
    std::atomic<void (*)(void *, const Taken &)> call{nullptr};
    std::atomic<void *> argument{nullptr};
    std::atomic<int> most{1};                   // shares that a helper takes at a time
};

// ---- what Python describes (native/library.py has the same structures)

struct Linear { const bf16 *w; const float *bias; int32_t out, in; };
struct Layer {
    const float *attention_norm, *mlp_norm, *qk_norm;
    Linear qkv, output, gate_up, down;
    int32_t window;
};
struct Model {
    int32_t layers, hidden, heads, kv_heads, head_dim, intermediate;
    float epsilon;
    const Layer *layer;
    // Bytes of a layer.
    int64_t weights() const { return 2 * int64_t(hidden) * ((2 * heads + 2 * kv_heads) * head_dim + 3 * intermediate); }
};
struct Cache { bf16 *data; int64_t layer, slab, head; };  // strides in elements
struct Pass {
    const float *rope;       // [positions][head_dim/2][cos, sin]
    float *x;                // [rows][hidden], changed in place
    const int32_t *slabs, *positions;  // [rows]; rows of a slab are neighbours
    const uint8_t *plans;    // which sublayers run: [2·layers], or one such row after another
    float *records;          // [last - first + 1][rows][hidden] or null
    int32_t plan_stride, rows, first, last;
    int32_t own;             // rows see the cache before their position, and themselves; nothing is written
};
struct Table {               // the knapsack of engine/draft/knapsack.py; row r holds what is reached before sublayer first + r
    const float *directions; // [2·layers + 1][rows][hidden], of unit length
    const int64_t *weights;  // [2·layers]
    const uint8_t *kept;     // [2·layers]: which sublayers always run
    float *states;           // [3·beam][rows][hidden]: those of row 0, then those of the last, and room
    float *cosines;          // [beam], of the last row
    int64_t *skipped;        // [last - first + 1][beam]
    int32_t *live;           // [last - first + 1]: entries
    int32_t *source;         // [last - first + 1][beam]: which entry of the row before,
    uint8_t *ran;            // and whether the sublayer ran
    double tau;
    int64_t capacity;
    int32_t beam, rows;
};
struct Sampling {
    float temperature, top_p, min_p;  // a temperature of 0 is greedy
    float noise;             // what it is multiplied with: 1 where the model speaks
    int32_t top_k;           // 0 or less: all
    uint64_t seed;           // mixed
};
struct Ends {                // what lies before and behind the layers
    const void *embedding;   // [vocabulary][hidden], of float where `wide`, of bf16 elsewhere
    const float *norm, *rope;
    Linear head;
    int32_t wide;
};
// Changes the logits of draw i, which comes after so many drafted tokens, as Python says.
using Edit = int32_t (*)(int32_t i, int32_t drafted, float *row);  // whether it changed the row
enum { BEFORE = 1, AFTER = 2 };  // a token is drawn
struct Drafts {
    const int32_t *slabs, *starts, *most;  // [requests]; positions of the first tokens; tokens to draft at most
    const uint8_t *plans;    // [requests][2·layers]
    const float *least, *worth;  // [requests]: the stop rule of engine/speculate.py
    const Sampling *sampling;    // [requests]
    const uint8_t *edited;   // [requests]: whose logits to edit, and when; after: the token is drawn again if they changed
    Edit edit;
    int32_t *tokens, *lengths;  // [requests][longest + 1], the first of each given; [requests], how many were drafted
    float *confidences;      // [requests][longest]
    float sure;              // at least so sure, a token is not edited after it was drawn
    int32_t requests, longest;
};
struct Verify {
    const uint8_t *plan;     // [2·layers]: which sublayers run
    const int32_t *tokens, *slabs, *positions;  // [rows]
    const int32_t *picked;   // [draws]: rows behind which a token is drawn, in rising order
    const Sampling *sampling;    // [draws]
    const uint8_t *edited;   // [draws]: whose logits to edit before
    Edit edit;
    int32_t *drawn;          // [draws]
    float **scores;          // gets where what was drawn from lies until the next call: [draws][vocabulary], by temperature
    float *records;          // as in Pass
    int32_t rows, draws;
};

struct Round {               // the verify pass over what was drafted, one row more for each request
    const uint8_t *plan;     // [2·layers]: which sublayers run
    const Sampling *sampling;    // [requests]
    int32_t *drawn;          // behind every row of each request, one request after the other
    double *seconds;         // [2]: of the drafts and of the verify pass
};

// ---- drawing

// Index of the largest (the first of equals), and its softmax probability if asked for.
int64_t top(const float *row, int64_t n, float *probability) {
    vf best[4] = {splat(NEVER), splat(NEVER), splat(NEVER), splat(NEVER)};  // chains that do not wait for each other
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int j = 0; j < 4; j++) { vf v = load<vf>(row + i + j * LANES); best[j] = v > best[j] ? v : best[j]; }
    for (int j = 1; j < 4; j++) best[0] = best[j] > best[0] ? best[j] : best[0];
    float high = highest(best[0]);
    for (; i < n; i++) high = std::max(high, row[i]);
    int64_t first = 0;
    while (first + LANES <= n && !any(load<vf>(row + first) == high)) first += LANES;
    while (first < n && row[first] != high) first++;
    if (probability) {
        vf sum{};
        for (i = 0; i + LANES <= n; i += LANES) sum += exponential(load<vf>(row + i) - high);
        float rest = total(sum);
        for (; i < n; i++) rest += exponential(row[i] - high);
        *probability = high == NEVER ? 0.f : 1.f / rest;
    }
    return first < n ? first : 0;
}

// Minus the Gumbel noise of LANES tokens, log(-log(1 - u)) with u from the finaliser of splitmix64 over key and token, as in
// engine/sampling.py.
vf less_noise(uint64_t key, const int32_t *tokens) {
    float uniform[LANES];
    for (int half = 0; half < LANES; half += LANES / 2) {
        vq x;
        for (int j = 0; j < LANES / 2; j++) x[j] = tokens[half + j];
        x = key + x * 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        x ^= x >> 31;
        const vf_half drawn = __builtin_convertvector(x >> 33, vf_half);
        for (int j = 0; j < LANES / 2; j++) uniform[half + j] = std::min((drawn[j] + 0.5f) * 0x1p-31f, 1 - 0x1p-24f);
    }
    return logarithm(-log_of_rest(load<vf>(uniform)));
}
constexpr float MOST_NOISE = 22.3f;  // of a token: -log(2^-32) = 22.19

// The key of a position's noise, from the mixed seed of its request.
uint64_t noise_key(uint64_t seed, int64_t position) {
    uint64_t x = (seed ^ uint64_t(position) * 0xd1342543de82ef95u) + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct Candidate { float score; int32_t token; };

// Of scores by temperature: the top_k highest, of these the fewest that hold top_p of the mass, of these those of at least
// min_p times the highest probability; best first, the lower token first of equals.
void candidates(const float *row, int32_t n, const Sampling &s, std::vector<Candidate> &kept) {
    float best, probability;
    best = row[top(row, n, &probability)];
    const bool limited = s.top_k > 0 && s.top_k < n;
    // Few are near the highest: those within a distance that grows until it holds all that can count.
    for (float depth : {4.f, 12.f, 24.f, 48.f, INFINITY}) {
        kept.clear();
        float mass = 0;
        for (int32_t i = 0; i < n; i++) if (row[i] >= best - depth && row[i] != NEVER) kept.push_back({row[i], i});
        if (limited ? int(kept.size()) >= s.top_k : s.top_p >= 1 && std::exp(-depth) <= s.min_p) break;
        for (const Candidate &c : kept) mass += std::exp(c.score - best);
        if (!limited && s.top_p < 1 && mass * probability >= s.top_p) break;
    }
    const auto better = [](const Candidate &a, const Candidate &b) {
        return a.score > b.score || (a.score == b.score && a.token < b.token);
    };
    if (limited && int(kept.size()) > s.top_k) {
        std::nth_element(kept.begin(), kept.begin() + s.top_k, kept.end(), better);
        kept.resize(s.top_k);
    }
    std::sort(kept.begin(), kept.end(), better);
    if (s.top_p < 1) {
        float whole = 1 / probability, before = 0;
        if (limited) { whole = 0; for (const Candidate &c : kept) whole += std::exp(c.score - best); }
        size_t count = 0;
        for (; count < kept.size() && (count == 0 || before < s.top_p * whole); count++) before += std::exp(kept[count].score - best);
        kept.resize(count);
    }
    if (s.min_p > 0) {
        const float least = best + std::log(s.min_p);
        while (kept.size() > 1 && kept.back().score < least) kept.pop_back();
    }
}

// The token that a request draws at a position from its logits, which are divided by its temperature; the share of the
// likeliest one.
int64_t draw(float *row, int32_t n, const Sampling &s, int64_t position, float *share) {
    if (s.temperature <= 0) return top(row, n, share);
    for (int32_t i = 0; i < n; i++) row[i] /= s.temperature;
    const uint64_t key = noise_key(s.seed, position);
    if (s.top_k <= 0 && s.top_p >= 1 && s.min_p <= 0) {
        // Most tokens are so far below the likeliest one that no noise lifts them above it: they need none.
        int32_t token = int32_t(top(row, n, share)), tokens[LANES] = {token};
        float best = row[token] - s.noise * less_noise(key, tokens)[0];
        for (int32_t first = 0; first < n; first += LANES) {
            float scores[LANES];
            const int some = std::min(LANES, n - first);
            if (some == LANES) store(scores, load<vf>(row + first));
            else for (int j = 0; j < LANES; j++) scores[j] = j < some ? row[first + j] : NEVER;
            if (!any(load<vf>(scores) > best - s.noise * MOST_NOISE)) continue;
            for (int j = 0; j < LANES; j++) tokens[j] = first + j;
            const vf noisy = load<vf>(scores) - s.noise * less_noise(key, tokens);
            if (!any(noisy >= best)) continue;
            for (int j = 0; j < LANES; j++)
                if (noisy[j] > best || (noisy[j] == best && first + j < token)) { best = noisy[j]; token = first + j; }
        }
        return token;
    }
    thread_local std::vector<Candidate> kept;
    candidates(row, n, s, kept);
    float sum = 0, best = NEVER;
    int32_t token = kept.empty() ? 0 : kept[0].token;
    for (size_t first = 0; first < kept.size(); first += LANES) {
        const int some = int(std::min<size_t>(LANES, kept.size() - first));
        int32_t tokens[LANES] = {};
        for (int j = 0; j < some; j++) tokens[j] = kept[first + j].token;
        const vf noise = s.noise * less_noise(key, tokens);
        for (int j = 0; j < some; j++) {
            const float score = kept[first + j].score - noise[j];
            sum += std::exp(kept[first + j].score - kept[0].score);
            if (score > best || (score == best && tokens[j] < token)) { best = score; token = tokens[j]; }
        }
    }
    if (share) *share = sum > 0 ? 1 / sum : 0;
    return token;
}

// ---- linear layers

constexpr int NEARBY = 32;  // pairs of inputs, 4 KB of weights: of lines asked for together, both halves are read soon

// Products of R rows x with vectors first … first + N - 1 of outputs, of a panel and the next one, over some pairs of
// inputs.
template <int R, int N, bool FETCH>
inline void strip(const float (&x)[R][2 * NEARBY], const bf16 *w, const bf16 *next, int64_t apart, int pairs, int first,
                  bool begin, float (*out)[2 * PANEL]) {
    constexpr int VECTORS = PANEL / LANES;
    const auto at = [&](int j) { return j / VECTORS * apart + (first + j) % VECTORS * 2 * LANES; };
    vf sums[R][N];
    for (int r = 0; r < R; r++)
        for (int j = 0; j < N; j++) sums[r][j] = begin ? vf{} : load<vf>(out[r] + (first + j) * LANES);
    for (int k = 0; k < pairs; k++) {
        const int64_t here = int64_t(k) * 2 * PANEL;
        if (FETCH) for (int j = 0; j < N; j += 2) __builtin_prefetch(next + here + at(j), 0, 2);
        dots<R, N>(sums, w + here, at, [&](int r) { return x[r] + 2 * k; });
    }
    for (int r = 0; r < R; r++) for (int j = 0; j < N; j++) store(out[r] + (first + j) * LANES, sums[r][j]);
}

// What is read after some panels, and how far its panels are apart.
struct Next { const bf16 *w; int64_t apart; };

// `panels` for sixteen registers: up to two rows with whole panels at a time, more with half of one.
template <int R, int P, bool AHEAD>
void narrow_panels(const bf16 *x, int64_t stride, const bf16 *w, Next ahead, int64_t apart, int pairs,
                   float (*out)[2 * PANEL]) {
    constexpr int N = R <= 2 ? 4 * P : 2;
    static_assert(P == 1 || N == 4 * P, "a strip of two panels begins at the first");
    const bf16 *const next = AHEAD ? ahead.w : w + NEAR;
    for (int k = 0; k < pairs; k += NEARBY) {
        const int some = std::min(NEARBY, pairs - k);
        float wide[R][2 * NEARBY];
        for (int r = 0; r < R; r++) widen(x + r * stride + 2 * k, 2 * some, wide[r]);
        const int64_t at = int64_t(k) * 2 * PANEL;
        for (int first = 0; first < 4 * P; first += N)
            strip<R, N, AHEAD || P == 1>(wide, w + at, next + at, apart, some, first, k == 0, out);
    }
}

// Products of R rows with P neighbouring panels, which are read once; the lines at `ahead` are asked for meanwhile. With
// three rows and more, and with one panel, the processor looks too few lines ahead by itself: it is asked for those
// that come soon.
template <int R, int P, bool AHEAD>
void panels(const bf16 *x, int64_t stride, const bf16 *w, Next ahead, int64_t apart, int pairs, float (*out)[2 * PANEL]) {
    vf sums[R][2 * P] = {};
    const auto some = [&](int first, int last, const bf16 *next, int64_t next_apart, auto fetch) {
        for (int k = first; k < last; k++) {
            vu part[2 * P];
            for (int j = 0; j < 2 * P; j++) {
                part[j] = load<vu>(w + (j / 2) * apart + k * 2 * PANEL + (j % 2) * PANEL);
                if (decltype(fetch)::value) __builtin_prefetch(next + (j / 2) * next_apart + (k * 2 + j % 2) * PANEL, 0, 2);
            }
            for (int r = 0; r < R; r++) {
                const uint32_t pair = load<uint32_t>(x + r * stride + 2 * k);
                for (int j = 0; j < 2 * P; j++) sums[r][j] = dot(sums[r][j], part[j], pair);
            }
        }
    };
    const int here = AHEAD ? pairs : std::max(0, pairs - NEAR / (2 * PANEL));
    some(0, here, AHEAD ? ahead.w : w + NEAR, apart, std::bool_constant<(AHEAD || P == 1 || R > 2)>{});
    if (here < pairs) some(here, pairs, ahead.w - here * 2 * PANEL, ahead.apart, std::true_type{});
    for (int r = 0; r < R; r++) for (int j = 0; j < 2 * P; j++) store(out[r] + j * LANES, sums[r][j]);
}

// What 32 registers hold, or 16: 24 sums or 12, the weights they are made from, and a pair of inputs.
constexpr int FEW = NARROW ? 1 : 6, MOST = NARROW ? 6 : 12;
using Kernel = void (*)(const bf16 *, int64_t, const bf16 *, Next, int64_t, int, float (*)[2 * PANEL]);
template <int R, int P, bool AHEAD> constexpr Kernel kernel_of() {
    if constexpr (NARROW) return narrow_panels<R, P, AHEAD>; else return panels<R, P, AHEAD>;
}
template <int P, bool AHEAD, int... R> Kernel kernel(int rows, std::integer_sequence<int, R...>) {
    static constexpr Kernel all[] = {kernel_of<R + 1, P, AHEAD>()...};
    return all[rows - 1];
}
template <int P, bool AHEAD> Kernel kernel(int rows) {
    return kernel<P, AHEAD>(rows, std::make_integer_sequence<int, P == 2 ? FEW : MOST>());
}

// ---- the same in tiles: up to sixteen rows take little more than one. Sums run in another order than above, so that a
// linear layer uses them for any number of rows, or never.

enum Fetch { NOTHING, SOON, AHEAD };  // what is asked for meanwhile: nothing, what comes in a moment, all that comes next
#ifdef WITH_TILES
// `panels` for as many rows as `tiles` says.
template <int P, Fetch fetch>
void tiled_panels(const bf16 *x, int64_t stride, const bf16 *w, Next ahead, int64_t apart, int pairs, float (*out)[2 * PANEL]) {
    _tile_zero(0); _tile_zero(1);
    if constexpr (P == 2) { _tile_zero(2); _tile_zero(3); }
    asm volatile("" ::: "memory");
    for (int k = 0; k < pairs; k += TILE_PAIRS) {
        const int beyond = fetch == AHEAD ? k : k + TILE_PAIRS - pairs;
        const bf16 *at = w + int64_t(k) * 2 * PANEL;
        const Next next = beyond < 0 ? Next{at + TILE_PAIRS * 2 * PANEL, apart} : Next{ahead.w + int64_t(beyond) * 2 * PANEL, ahead.apart};
        const auto ask = [&](int quarter) {
            if (fetch == NOTHING) return;
            for (int i = 0; i < TILE_PAIRS / 2; i++)
                for (int j = 0; j < P; j++)
                    __builtin_prefetch(next.w + j * next.apart + (quarter * TILE_PAIRS / 2 + i) * PANEL, 0, fetch == SOON ? 3 : 2);
        };
        _tile_loadd(4, x + 2 * k, stride * 2);
        ask(0);
        _tile_loadd(5, at, 4 * PANEL);
        _tile_dpbf16ps(0, 4, 5);
        ask(1);
        _tile_loadd(6, at + PANEL, 4 * PANEL);
        _tile_dpbf16ps(1, 4, 6);
        ask(2);
        if constexpr (P == 2) {
            _tile_loadd(7, at + apart, 4 * PANEL);
            _tile_dpbf16ps(2, 4, 7);
        }
        ask(3);
        if constexpr (P == 2) {
            _tile_loadd(5, at + apart + PANEL, 4 * PANEL);
            _tile_dpbf16ps(3, 4, 5);
        }
    }
    _tile_stored(0, out[0], sizeof out[0]);
    _tile_stored(1, out[0] + PANEL / 2, sizeof out[0]);
    if constexpr (P == 2) {
        _tile_stored(2, out[0] + PANEL, sizeof out[0]);
        _tile_stored(3, out[0] + PANEL + PANEL / 2, sizeof out[0]);
    }
    asm volatile("" ::: "memory");
}
inline bool tiled(const Linear &l) { return TILES && l.in % (2 * TILE_PAIRS) == 0; }
template <int P> Kernel tiled_kernel(Fetch fetch) {
    return fetch == SOON ? tiled_panels<P, SOON> : fetch == AHEAD ? tiled_panels<P, AHEAD> : tiled_panels<P, NOTHING>;
}
#else
inline bool tiled(const Linear &) { return false; }
template <int P> Kernel tiled_kernel(Fetch) { return nullptr; }
#endif

// How the panels of a linear layer are shared out for so many rows: units of one or two, `chunk` of them a share.
struct Tiling {
    Tiling(const Linear &l, int rows, int threads) : size(int64_t(l.in) * PANEL), all((l.out + PANEL - 1) / PANEL) {
        width = (rows <= FEW || tiled(l)) && all >= 4 * threads ? 2 : 1;
        units = (all + width - 1) / width;
        chunk = int(std::max<int64_t>(1, std::min<int64_t>((128 << 10) / (width * size), units / (4 * threads))));
    }
    // What a thread of the team reads first that goes forward from the first share, or back from the last.
    int begin(bool back, const Team &team) const {
        const int shares = (units + chunk - 1) / chunk;
        return back ? std::max(0, shares - team.of_left(shares - team.at_first(shares))) * chunk : 0;
    }
    int64_t size;  // of a panel
    int all, width, units, chunk;
};

// `write(row, column, sums, columns)` gets the products of x [rows][in] with each panel, or two of them. `later` is
// multiplied with next, as far as is known.
template <class Write> void products(Team &team, const Linear &l, const bf16 *x, int rows, const Linear *later, Write write) {
    if (!rows) return;
    const Tiling t(l, rows, team.size), then(later ? *later : l, rows, team.size);
    const bool in_tiles = tiled(l);
    const int most = in_tiles ? TILE_ROWS : MOST, blocks = (rows + most - 1) / most;
    const auto panel_of = [&](int unit) { return l.w + unit * t.width * t.size; };
    team.each(t.units, t.chunk, [&](const Share &share) {
        float sums[TILE_ROWS][2 * PANEL];
        if (in_tiles) tiles(std::min(rows, TILE_ROWS));
        const int from = then.begin(share.back, team);
        const Next last = share.after >= 0 ? Next{panel_of(share.after), t.size}
                                           : Next{(later ? later->w : l.w) + from * then.width * then.size, then.size};
        for (int unit = share.first; unit < share.last; unit++) {
            const int panel = unit * t.width;
            const bool two = t.width == 2 && panel + 1 < t.all;
            const Next next = unit + 1 < share.last ? Next{panel_of(unit + 1), t.size} : last;
            for (int b = 0, row = 0; b < blocks; b++) {
                // Several blocks of rows read a panel from cache after the first: time to fetch the next from memory.
                const bool ahead = blocks > 1 && b == blocks - 1;
                int count = (rows - row) / (blocks - b), again = 0;  // of its rows, those that another block has too
                Kernel run;
                if (in_tiles) {
                    count = std::min(rows - row, TILE_ROWS);
                    if (blocks > 1) again = TILE_ROWS - count;
                    const Fetch fetch = blocks == 1 ? SOON : ahead ? AHEAD : NOTHING;
                    run = two ? tiled_kernel<2>(fetch) : tiled_kernel<1>(fetch);
                } else {
                    run = two ? kernel<2, false>(count) : ahead ? kernel<1, true>(count) : kernel<1, false>(count);
                }
                run(x + int64_t(row - again) * l.in, l.in, panel_of(unit), next, t.size, l.in / 2, sums);
                for (int r = 0; r < count; r++) write(row + r, panel * PANEL, sums[again + r], two ? 2 * PANEL : PANEL);
                row += count;
            }
        }
    });
}

// ---- norms

void rms_norm(const float *x, const float *weight, int n, float epsilon, bf16 *out) {
    vf squares{};
    int i = 0;
    for (; i + LANES <= n; i += LANES) { vf v = load<vf>(x + i); squares += v * v; }
    float sum = total(squares);
    for (int j = i; j < n; j++) sum += x[j] * x[j];
    const float scale = 1.f / std::sqrt(sum / n + epsilon);
    for (i = 0; i + LANES <= n; i += LANES) store(out + i, narrow(load<vf>(x + i) * scale * load<vf>(weight + i)));
    for (; i < n; i++) out[i] = narrow(x[i] * scale * weight[i]);
}

// Of x with a direction of unit length.
float cosine(const float *x, const float *direction, int n) {
    vf products{}, squares{};
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vf v = load<vf>(x + i);
        products += v * load<vf>(direction + i);
        squares += v * v;
    }
    float along = total(products), length = total(squares);
    for (; i < n; i++) { along += x[i] * direction[i]; length += x[i] * x[i]; }
    return along / std::max(std::sqrt(length), 1e-12f);
}

// ---- a pass

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

struct Unit { int first, count, part; };

// The rows of a pass, or some of them, through the layers.
class Lane {
public:
    explicit Lane(Team &team) : team(team) {}

    // `later` is read behind the layers. Rows of `before` may come before these in the same request.
    void run(const Model &m, const Cache &cache, const Pass &p, const Linear *later, const Lane *before = nullptr) {
        this->m = &m; this->cache = &cache; this->p = &p; this->before = before; behind = later;
        const size_t rows = p.rows;
        active.resize(rows);
        normed = normed_.get(rows * m.hidden);
        qkv = qkv_.get(rows * (m.heads + 2 * m.kv_heads) * m.head_dim);
        heads = heads_.get(rows * m.heads * m.head_dim);
        inner = inner_.get(rows * m.intermediate);
        team.begin();
        sublayers();
    }
    // Before another waits for what this one will keep.
    void rewind() { kept.store(-1, std::memory_order_relaxed); }

    void multiply(const Linear &l, const float *x, int rows, float *out, const float *norm, float epsilon) {
        normed = normed_.get(size_t(rows) * l.in);
        team.begin();
        each_row(rows, l.in, [&](int r) {
            const float *from = x + int64_t(r) * l.in;
            bf16 *to = normed + int64_t(r) * l.in;
            if (norm) rms_norm(from, norm, l.in, epsilon, to);
            else for (int i = 0; i < l.in; i++) to[i] = narrow(from[i]);
        });
        products(team, l, normed, rows, nullptr, [&](int r, int column, const float *sums, int columns) {
            const int n = std::min(columns, l.out - column);
            float *to = out + int64_t(r) * l.out + column;
            for (int i = 0; i < n; i++) to[i] = sums[i] + (l.bias ? l.bias[column + i] : 0.f);
        });
    }

    // work(r) for every row, shared out if there is enough to do, `least` neighbours together.
    template <class Work> void each_row(int rows, int width, Work &&work, int least = 1) {
        const int share = int64_t(rows) * width <= LIGHT ? std::max(1, rows) : std::max(least, rows / (8 * team.size));
        team.each(rows, share, [&](int first, int last) { for (int r = first; r < last; r++) work(r); });
    }

private:
    // The first linear layer of the next sublayer that the first row runs, or what lies behind the last.
    const Linear *after(int index) const {
        while (++index < p->last) {
            if (!p->plans[index]) continue;
            const Layer &layer = m->layer[index / 2];
            return index % 2 ? &layer.gate_up : &layer.qkv;
        }
        return behind;
    }

    void sublayers() {
        for (int index = p->first; index < p->last; index++) {
            if (p->records) record(index);
            choose(index);
            if (count) {
                later = after(index);
                if (index % 2) mlp(m->layer[index / 2]); else attention(index / 2);
            }
            kept.store(index, std::memory_order_release);
        }
        if (p->records) record(p->last);
    }

    void record(int index) {
        float *to = p->records + int64_t(index - p->first) * p->rows * m->hidden;
        std::memcpy(to, p->x, size_t(p->rows) * m->hidden * sizeof(float));
    }

    // Which rows run this sublayer.
    void choose(int index) {
        count = 0;
        for (int r = 0; r < p->rows; r++) if (p->plans[int64_t(r) * p->plan_stride + index]) active[count++] = r;
        if (count && index % 2 == 0) share_out(m->layer[index / 2].window);
    }

    // Units of attention: rows of one slab, and which part of the context they scan (-1: all parts, one by one). Parts
    // are shared out where there are too few rows and heads to keep the team busy.
    void share_out(int window) {
        units.clear();
        int parts = 1;
        for (int i = 0; i < count;) {
            int n = 1;
            while (i + n < count && n < UNIT_ROWS && p->slabs[active[i + n]] == p->slabs[active[i]]) n++;
            units.push_back({i, n, -1});
            for (int r = 0; r < n; r++) parts = std::max(parts, p->positions[active[i + r]] / PART + 1);
            i += n;
        }
        split = parts > 1 && count <= SPLIT_ROWS && int(units.size()) * m->kv_heads < 4 * team.size ? parts : 0;
        apart = !split;
        for (size_t u = 1; u < units.size(); u++) apart &= slab_of(units[u]) != slab_of(units[u - 1]);
        if (!split) return;
        std::vector<Unit> whole;
        whole.swap(units);
        for (const Unit &unit : whole) {
            const auto [first, last] = parts_of(unit, window);
            for (int part = first; part <= last; part++) units.push_back({unit.first, unit.count, part});
        }
        partial = partial_.get(size_t(count) * m->heads * split * state_size());
    }

    int slab_of(const Unit &unit) const { return p->slabs[active[unit.first]]; }

    // First and last part of the context that any row of the unit sees.
    std::pair<int, int> parts_of(const Unit &unit, int window) const {
        int first = 1 << 30, last = 0;
        for (int r = 0; r < unit.count; r++) {
            const int position = p->positions[active[unit.first + r]];
            first = std::min(first, begin(position, window) / PART);
            last = std::max(last, position / PART);
        }
        return {first, last};
    }

    static int begin(int position, int window) { return window ? std::max(0, position + 1 - window) : 0; }
    int state_size() const { return m->head_dim + LANES; }  // weighted values, then highest score and sum of weights

    void norm_rows(const float *weight) {
        each_row(count, m->hidden, [&](int i) {
            rms_norm(p->x + int64_t(active[i]) * m->hidden, weight, m->hidden, m->epsilon, normed + int64_t(i) * m->hidden);
        });
    }

    void add_products(const Linear &l, const bf16 *x, const Linear *later) {
        products(team, l, x, count, later, [&](int i, int column, const float *sums, int columns) {
            const int n = std::min(columns, l.out - column);
            float *to = p->x + int64_t(active[i]) * m->hidden + column;
            if (l.bias) for (int j = 0; j < n; j++) to[j] += sums[j] + l.bias[column + j];
            else for (int j = 0; j < n; j++) to[j] += sums[j];
        });
    }

    void mlp(const Layer &layer) {
        norm_rows(layer.mlp_norm);
        const Linear &l = layer.gate_up;  // each panel: 16 outputs of the gate, the same 16 of the other half
        products(team, l, normed, count, &layer.down, [&](int i, int column, const float *sums, int columns) {
            for (int j = 0; j < columns; j += PANEL)
                for (int k = j; k < j + PANEL / 2; k += LANES) {
                    vf gate = load<vf>(sums + k), up = load<vf>(sums + k + PANEL / 2);
                    if (l.bias) { gate += load<vf>(l.bias + column + k); up += load<vf>(l.bias + column + k + PANEL / 2); }
                    const vf kept = gate < -87.f ? splat(-87.f) : gate;
                    bf16 *to = inner + int64_t(i) * m->intermediate + (column + j) / 2 + k - j;
                    store(to, narrow(gate / (1.f + exponential(-kept)) * up));
                }
        });
        add_products(layer.down, inner, later);
    }

    void attention(int index) {
        const Layer &layer = m->layer[index];
        norm_rows(layer.attention_norm);
        const Linear &l = layer.qkv;
        products(team, l, normed, count, &layer.output, [&](int i, int column, const float *sums, int columns) {
            const int n = std::min(columns, l.out - column);
            float *to = qkv + int64_t(i) * l.out + column;
            for (int j = 0; j < n; j++) to[j] = sums[j] + (l.bias ? l.bias[column + j] : 0.f);
        });
        // Rows of a request write to the same lines of the cache, which threads would take from each other.
        if (!apart) each_row(count, l.out, [&](int i) {
            for (int kv = 0; kv < m->kv_heads; kv++) turn_and_keep(index, layer, i, kv);
        }, BLOCK);
        for (int i = 0; before && before->kept.load(std::memory_order_acquire) < 2 * index; i++) if (i >= EAGER) pause();
        attend(index, layer);
        add_products(layer.output, heads, later);
    }

    bf16 *slab(int layer, int row) const { return cache->data + layer * cache->layer + p->slabs[row] * cache->slab; }

    // RoPE (and the heads' norms) of row i of the active ones, for one kv head and those that attend to it; q to bf16, k
    // and v to the cache.
    ONE_COPY void turn_and_keep(int index, const Layer &layer, int i, int kv) {
        const int width = m->head_dim, row = active[i], position = p->positions[row], group = m->heads / m->kv_heads;
        float *from = qkv + int64_t(i) * (m->heads + 2 * m->kv_heads) * width;
        const float *rope = p->rope + int64_t(position) * width;
        const auto turned = [&](int h) {
            float *head = from + h * width;
            if (layer.qk_norm) {
                vf squares{};
                for (int d = 0; d < width; d += LANES) { vf v = load<vf>(head + d); squares += v * v; }
                const float scale = 1.f / std::sqrt(total(squares) / width + m->epsilon);
                for (int d = 0; d < width; d += LANES) store(head + d, load<vf>(head + d) * scale * load<vf>(layer.qk_norm + h * width + d));
            }
            return head;
        };
        for (int h = kv * group; h < (kv + 1) * group; h++) {
            const float *head = turned(h);
            bf16 *q = heads + (int64_t(i) * m->heads + h) * width;
            for (int d = 0; d < width; d += LANES) store(q + d, narrow(turn(load<vf>(head + d), load<vf>(rope + d))));
        }
        float *k = turned(m->heads + kv);
        const float *v = k + m->kv_heads * width;
        for (int d = 0; d < width; d += LANES) store(k + d, turn(load<vf>(k + d), load<vf>(rope + d)));
        if (p->own) return;
        const int lane = position % BLOCK;
        bf16 *to_k = slab(index, row) + int64_t(position / BLOCK) * 2 * BLOCK * width + kv * cache->head;
        bf16 *to_v = to_k + BLOCK * width + lane / 2 * 2 * width + lane % 2;
        to_k += 2 * lane;
        for (int d = 0; d < width; d += LANES) {
            bf16 kept[LANES];
            store(kept, narrow(load<vf>(k + d)));
            for (int j = 0; j < LANES; j += 2) std::memcpy(to_k + (d + j) * BLOCK, kept + j, 2 * sizeof(bf16));
            store(kept, narrow(load<vf>(v + d)));
            for (int j = 0; j < LANES; j++) to_v[2 * (d + j)] = kept[j];
        }
    }

    // Pairs (a, b), turned by angles of which the cosines and sines are given in pairs: a·c - b·s, b·c + a·s.
    static vf turn(vf pairs, vf factors) {
        const vi evens = lanes() & ~1, odds = lanes() | 1, neighbours = lanes() ^ 1;
        const vf cosines = shuffled(factors, evens), sines = shuffled(factors, odds), others = shuffled(pairs, neighbours);
        const vf sign = __builtin_convertvector((lanes() & 1) * 2 - 1, vf);
        return pairs * cosines + others * (sines * sign);
    }

    // Room for n states, of this thread.
    float *scratch(int n) const {
        thread_local std::vector<float> room;
        if (room.size() < size_t(n) * state_size()) room.resize(size_t(n) * state_size());
        return room.data();
    }

    // Softmax over the context, a part of it at a time; parts are merged in their order.
    void attend(int index, const Layer &layer) {
        const int n = int(units.size()) * m->kv_heads, window = layer.window;
        team.each(n, std::max(1, n / (4 * team.size)), [&](int from, int to) {
            for (int u = from; u < to; u++) {
                const bf16 *next = u + 1 < n ? beginning(index, window, u + 1) : nullptr;
                if (split) part(index, window, units[u / m->kv_heads], u % m->kv_heads, next);
                else whole(index, layer, units[u / m->kv_heads], u % m->kv_heads, next);
            }
        }, false);
        if (!split) return;
        team.each(count * m->heads, m->heads, [&](int from, int to) {
            for (int u = from; u < to; u++) join(u / m->heads, u % m->heads, window);
        });
    }

    // The first tile of a unit and kv head, more or less: what is asked for before it is its turn.
    const bf16 *beginning(int index, int window, int u) const {
        const Unit &unit = units[u / m->kv_heads];
        const int row = active[unit.first], low = std::max(begin(p->positions[row], window), std::max(unit.part, 0) * PART);
        return slab(index, row) + u % m->kv_heads * cache->head + int64_t(low / TILE) * TILE * 2 * m->head_dim;
    }

    // One part of the context of a unit.
    void part(int index, int window, const Unit &unit, int kv, const bf16 *next) {
        const int group = m->heads / m->kv_heads, size = state_size();
        float *states = scratch(unit.count * group);
        scan(index, window, unit, kv, states, next);
        for (int r = 0; r < unit.count; r++)
            for (int g = 0; g < group; g++)
                std::memcpy(part_of(unit.first + r, kv * group + g, unit.part), states + (r * group + g) * size, size * sizeof(float));
    }

    // All parts of it; first what nobody else needs, which the thread that reads it has at hand then.
    void whole(int index, const Layer &layer, const Unit &unit, int kv, const bf16 *next) {
        if (apart) for (int r = 0; r < unit.count; r++) turn_and_keep(index, layer, unit.first + r, kv);
        const int window = layer.window, group = m->heads / m->kv_heads, size = state_size(), n = unit.count * group;
        float *states = scratch(2 * n), *merged = states + n * size;
        const auto [first, last] = parts_of(unit, window);
        scan(index, window, {unit.first, unit.count, first}, kv, merged, first == last ? next : nullptr);
        for (int part = first + 1; part <= last; part++) {
            scan(index, window, {unit.first, unit.count, part}, kv, states, part == last ? next : nullptr);
            for (int s = 0; s < n; s++) merge(merged + s * size, states + s * size);
        }
        for (int r = 0; r < unit.count; r++)
            for (int g = 0; g < group; g++) finish(unit.first + r, kv * group + g, merged + (r * group + g) * size);
    }

    // The parts of one row and head.
    void join(int i, int head, int window) {
        const int position = p->positions[active[i]];
        float *merged = scratch(1);
        clear(merged);
        for (int part = begin(position, window) / PART; part <= position / PART; part++) merge(merged, part_of(i, head, part));
        finish(i, head, merged);
    }

    float *part_of(int i, int head, int part) { return partial + ((size_t(i) * m->heads + head) * split + part) * state_size(); }

    void clear(float *state) const {
        std::memset(state, 0, m->head_dim * sizeof(float));
        state[m->head_dim] = NEVER;
        state[m->head_dim + 1] = 0;
    }

    // One copy of the code, so that the compiler rounds the same way wherever parts are merged.
    ONE_COPY void merge(float *into, const float *part) const {
        const int width = m->head_dim;
        const float high = std::max(into[width], part[width]);
        if (high == NEVER) return;
        const float a = into[width] == NEVER ? 0.f : exponential(into[width] - high);
        const float b = part[width] == NEVER ? 0.f : exponential(part[width] - high);
        for (int d = 0; d < width; d += LANES) store(into + d, load<vf>(into + d) * a + load<vf>(part + d) * b);
        into[width + 1] = into[width + 1] * a + part[width + 1] * b;
        into[width] = high;
    }

    void finish(int i, int head, float *state) {
        const int width = m->head_dim;
        bf16 *to = heads + (int64_t(i) * m->heads + head) * width;
        if (p->own) {  // the row's own position, which is not in the cache
            const int kv = head / (m->heads / m->kv_heads);
            const float *k = qkv + int64_t(i) * (m->heads + 2 * m->kv_heads) * width + (m->heads + kv) * width;
            const float *v = k + m->kv_heads * width;
            float score = 0;
            for (int d = 0; d < width; d++) score += widen(to[d]) * widen(narrow(k[d]));
            score *= scale();
            const float high = std::max(state[width], score);
            const float a = state[width] == NEVER ? 0.f : exponential(state[width] - high), b = exponential(score - high);
            for (int d = 0; d < width; d++) state[d] = state[d] * a + b * widen(narrow(v[d]));
            state[width + 1] = state[width + 1] * a + b;
        }
        const float share = 1.f / state[width + 1];
        for (int d = 0; d < width; d += LANES) store(to + d, narrow(load<vf>(state + d) * share));
    }

    float scale() const { return 1.f / std::sqrt(float(m->head_dim)); }

    // The states of all rows of a unit for one kv head over one part of the context; `next` is what will be read then.
    void scan(int index, int window, Unit unit, int kv, float *states, const bf16 *next) {
        const int group = m->heads / m->kv_heads, width = m->head_dim, size = state_size();
        int low = (unit.part + 1) * PART, high = 0;
        for (int r = 0; r < unit.count; r++) {
            const int position = p->positions[active[unit.first + r]];
            low = std::min(low, std::max(begin(position, window), unit.part * PART));
            high = std::max(high, std::min(position + !p->own, (unit.part + 1) * PART));
            for (int g = 0; g < group; g++) clear(states + (size_t(r) * group + g) * size);
        }
        thread_local std::vector<Query> queries;
        queries.clear();
        for (int r = 0; r < unit.count; r++) {
            const int position = p->positions[active[unit.first + r]];
            const bf16 *q = heads + (int64_t(unit.first + r) * m->heads + kv * group) * width;
            for (int g = 0; g < group; g++)
                queries.push_back({q + g * width, states + (size_t(r) * group + g) * size, begin(position, window), position + !p->own});
        }
        if (TILES) together(queries);
        const bf16 *data = slab(index, active[unit.first]) + kv * cache->head;
        for (int tile = low / TILE * TILE; tile < high; tile += TILE) {
            // Asked for with the first queries: a tile is over before the processor has found out what is read.
            const bf16 *ahead = tile + TILE < high ? data + int64_t(tile + TILE) * 2 * width : next;
            const bf16 *blocks = data + int64_t(tile / BLOCK) * 2 * BLOCK * width;
            const int n = int(queries.size());
            for (int i = 0; i < n;) {
                const int used = queries[i].blocks_of(tile);
                int alike = 1;
                while (i + alike < n && queries[i + alike].blocks_of(tile) == used) alike++;
                for (int parts = used ? (alike + together_most() - 1) / together_most() : 0, done = 0; parts; parts--) {
                    const int some = (alike - done) / parts;
                    if (TILES) look_in_tiles(some, &queries[i + done], blocks, ahead, used, tile);
                    else look(some, &queries[i + done], blocks, ahead, used, tile);
                    done += some;
                    ahead = nullptr;
                }
                i += alike;
            }
        }
    }

    // What a row and head asks of the positions that it sees, and where the answer gathers.
    struct Query {
        const bf16 *q;
        float *state;
        int from, to;
        // How many of a tile's blocks it has to look at.
        int blocks_of(int tile) const {
            if (from >= to || from >= tile + TILE || to <= tile) return 0;
            return (std::min(to, tile + TILE) - tile + BLOCK - 1) / BLOCK;
        }
    };

    // Queries that read a tile together: as many as have room in the registers.
    static constexpr int TOGETHER = NARROW ? 4 : 6;
    static int together_most() { return TILES ? TILE_ROWS : TOGETHER; }

#ifdef WITH_TILES
    // Has the vectors of all queries lie one behind the other.
    void together(std::vector<Query> &queries) const {
        thread_local std::vector<bf16> room;
        const size_t width = m->head_dim;
        room.resize(std::max(room.size(), queries.size() * width));
        for (size_t i = 0; i < queries.size(); i++) {
            std::memcpy(&room[i * width], queries[i].q, width * sizeof(bf16));
            queries[i].q = &room[i * width];
        }
    }

    // `look` with tiles of hardware: sums run in another order, for any number of queries.
    void look_in_tiles(int some, const Query *queries, const bf16 *blocks, const bf16 *ahead, int used, int tile) const {
        alignas(64) float scores[TILE_ROWS][TILE];
        alignas(64) bf16 weights[TILE_ROWS][TILE];
        const int width = m->head_dim;
        const int64_t block = 2 * BLOCK * width;
        tiles(some, true);
        asm volatile("" ::: "memory");
        for (int half = 0; half < 2; half++) {
            const bf16 *keys = blocks + half * 2 * block, *soon = ahead ? ahead + half * 2 * block : nullptr;
            _tile_zero(0); _tile_zero(1);
            for (int d = 0; d < width; d += 2 * TILE_PAIRS) {
                const auto ask = [&](int b) {
                    if (soon) for (int i = 0; i < TILE_PAIRS; i++) __builtin_prefetch(soon + b * block + (d / 2 + i) * 2 * BLOCK, 0, 2);
                };
                _tile_loadd(4, queries->q + d, width * 2);
                ask(0); _tile_loadd(2, keys + d * BLOCK, 4 * BLOCK); _tile_dpbf16ps(0, 4, 2);
                ask(1); _tile_loadd(3, keys + block + d * BLOCK, 4 * BLOCK); _tile_dpbf16ps(1, 4, 3);
            }
            _tile_stored(0, scores[0] + half * 2 * BLOCK, sizeof scores[0]);
            _tile_stored(1, scores[0] + half * 2 * BLOCK + BLOCK, sizeof scores[0]);
        }
        asm volatile("" ::: "memory");
        for (int i = 0; i < some; i++) {
            vf found[VECTORS];
            for (int v = 0; v < VECTORS; v++) found[v] = load<vf>(scores[i] + v * LANES);
            weigh(queries[i], found, used, tile, weights[i]);
        }
        asm volatile("" ::: "memory");
        const int64_t apart = state_size() * sizeof(float);
        for (int d = 0; d < width; d += 2 * BLOCK) {
            float *state = queries->state + d;
            _tile_loadd(0, state, apart);
            _tile_loadd(1, state + BLOCK, apart);
            for (int b = 0; b < used; b++) {
                const bf16 *values = blocks + b * block + BLOCK * width + 2 * d;
                if (ahead) for (int i = 0; i < BLOCK / 2; i++) {
                    __builtin_prefetch(ahead + (values - blocks) + i * 2 * width, 0, 2);
                    __builtin_prefetch(ahead + (values - blocks) + i * 2 * width + 2 * BLOCK, 0, 2);
                }
                _tile_loadd(5, weights[0] + b * BLOCK, sizeof weights[0]);
                _tile_loadd(6, values, 4 * width);
                _tile_dpbf16ps(0, 5, 6);
                _tile_loadd(7, values + 2 * BLOCK, 4 * width);
                _tile_dpbf16ps(1, 5, 7);
            }
            _tile_stored(0, state, apart);
            _tile_stored(1, state + BLOCK, apart);
        }
        asm volatile("" ::: "memory");
    }
#else
    void together(std::vector<Query> &) const {}
    void look_in_tiles(int, const Query *, const bf16 *, const bf16 *, int, int) const {}
#endif

    void look(int some, const Query *queries, const bf16 *blocks, const bf16 *ahead, int used, int tile) const {
        switch (some) {
            case 1: return look<1>(queries, blocks, ahead, used, tile);
            case 2: return look<2>(queries, blocks, ahead, used, tile);
            case 3: return look<3>(queries, blocks, ahead, used, tile);
            case 4: return look<4>(queries, blocks, ahead, used, tile);
            case 5: if constexpr (TOGETHER >= 5) return look<5>(queries, blocks, ahead, used, tile); break;
            case 6: if constexpr (TOGETHER >= 6) return look<6>(queries, blocks, ahead, used, tile); break;
        }
    }

    template <int G> void look(const Query *queries, const bf16 *blocks, const bf16 *ahead, int used, int tile) const {
        alignas(64) bf16 weights[G][TILE];
        vf found[G][VECTORS] = {};
        if constexpr (NARROW) narrow_dot_keys<G>(queries, blocks, ahead, used, found);
        else switch (used) {
            case 1: case 2: dot_keys<G, 2>(queries, blocks, ahead, found); break;
            case 3: dot_keys<G, 3>(queries, blocks, ahead, found); break;
            default: dot_keys<G, VECTORS>(queries, blocks, ahead, found);
        }
        for (int g = 0; g < G; g++) weigh(queries[g], found[g], used, tile, weights[g]);
        values<G>(queries, blocks, ahead, used, weights);
    }

    // Vectors of a tile's scores, and where the pairs of keys of one of them lie for the first two dimensions.
    static constexpr int VECTORS = TILE / LANES;
    int64_t keys_of(int v) const { return int64_t(v * LANES / BLOCK) * 2 * BLOCK * m->head_dim + v * LANES % BLOCK * 2; }

    // q · k of the first N blocks of a tile for G queries.
    template <int G, int N> void dot_keys(const Query *queries, const bf16 *blocks, const bf16 *ahead, vf (&found)[G][VECTORS]) const {
        for (int d = 0; d < m->head_dim / 2; d++) {
            vu keys[N];
            for (int v = 0; v < N; v++) {
                keys[v] = load<vu>(blocks + keys_of(v) + d * 2 * BLOCK);
                if (ahead) __builtin_prefetch(ahead + keys_of(v) + d * 2 * BLOCK, 0, 2);
            }
            for (int g = 0; g < G; g++) {
                const uint32_t pair = load<uint32_t>(queries[g].q + 2 * d);
                for (int v = 0; v < N; v++) found[g][v] = dot(found[g][v], keys[v], pair);
            }
        }
    }

    // The same for sixteen registers; of a tile's blocks only those that are used, perhaps one more.
    template <int G>
    void narrow_dot_keys(const Query *queries, const bf16 *blocks, const bf16 *ahead, int used, vf (&found)[G][VECTORS]) const {
        constexpr int N = G <= 2 ? 4 : 2;
        const int width = m->head_dim;
        thread_local std::vector<float> wide;
        if (wide.size() < size_t(G * width)) wide.resize(G * width);
        for (int g = 0; g < G; g++) widen(queries[g].q, width, wide.data() + g * width);
        const float *x = wide.data();
        for (int first = 0; first < used * (BLOCK / LANES); first += N) {
            vf sums[G][N] = {};
            for (int d = 0; d < width / 2; d++) {
                const auto at = [&](int j) { return keys_of(first + j); };
                if (ahead) for (int j = 0; j < N; j += 2) __builtin_prefetch(ahead + at(j) + d * 2 * BLOCK, 0, 2);
                dots<G, N>(sums, blocks + d * 2 * BLOCK, at, [&](int g) { return x + g * width + 2 * d; });
            }
            for (int g = 0; g < G; g++) for (int j = 0; j < N; j++) found[g][first + j] = sums[g][j];
        }
    }

    // Weights e^(score - highest) of a tile for a query; what was summed before is scaled to the new highest. One copy of
    // the code, so that the compiler rounds the same way whoever else reads the tile.
    ONE_COPY void weigh(const Query &query, vf *found, int blocks_used, int tile, bf16 *weights) const {
        const int width = m->head_dim, used = blocks_used * (BLOCK / LANES);
        const float scale = this->scale();
        const bool whole = query.from <= tile && tile + TILE <= query.to;
        vf top = splat(NEVER);
        for (int v = 0; v < used; v++) {
            vf s = found[v] * scale;
            if (!whole) {
                const vi at = lanes() + (tile + v * LANES);
                s = at < query.from ? splat(NEVER) : s;
                s = at >= query.to ? splat(NEVER) : s;
            }
            found[v] = s;
            top = top > s ? top : s;
        }
        float *state = query.state;
        const float before = state[width], high = std::max(before, highest(top));
        const float factor = before == high ? 1.f : before == NEVER ? 0.f : exponential(before - high);
        vf sum{};
        for (int v = 0; v < used; v++) {
            const vf w = exponential(found[v] - high);
            sum += w;
            store(weights + v * LANES, narrow(w));
        }
        state[width] = high;
        state[width + 1] = state[width + 1] * factor + total(sum);
        if (factor != 1.f) for (int d = 0; d < width; d += LANES) store(state + d, load<vf>(state + d) * factor);
    }

    // Adds the weighed values of a tile for G queries.
    template <int G>
    void values(const Query *queries, const bf16 *blocks, const bf16 *ahead, int used, const bf16 (*weights)[TILE]) const {
        constexpr int N = NARROW && G > 2 ? 2 : 4;
        float wide[NARROW ? G : 1][TILE];
        if (NARROW) for (int g = 0; g < G; g++) widen(weights[g], used * BLOCK, wide[g]);
        int d = 0;
        for (; d + N * LANES <= m->head_dim; d += N * LANES) add_values<G, N>(queries, blocks, ahead, used, d, weights, wide);
        if constexpr (N > 2) if (d < m->head_dim) add_values<G, 2>(queries, blocks, ahead, used, d, weights, wide);
    }

    // N vectors of dimensions from d on.
    template <int G, int N, class Wide>
    void add_values(const Query *queries, const bf16 *blocks, const bf16 *ahead, int used, int d, const bf16 (*weights)[TILE],
                    const Wide &wide) const {
        const int width = m->head_dim;
        vf sums[G][N];
        for (int g = 0; g < G; g++) for (int j = 0; j < N; j++) sums[g][j] = load<vf>(queries[g].state + d + j * LANES);
        for (int b = 0; b < used; b++) {
            const int64_t begin = int64_t(b) * 2 * BLOCK * width + BLOCK * width + 2 * d;
            for (int pair = 0; pair < BLOCK / 2; pair++) {
                const int64_t at = begin + pair * 2 * width;
                if (ahead) for (int j = 0; j < N; j += 32 / (2 * LANES)) __builtin_prefetch(ahead + at + j * 2 * LANES, 0, 2);
                if constexpr (NARROW) {
                    const auto vector = [](int j) { return j * 2 * LANES; };
                    dots<G, N>(sums, blocks + at, vector, [&](int g) { return wide[g] + b * BLOCK + 2 * pair; });
                } else {
                    vu part[N];
                    for (int j = 0; j < N; j++) part[j] = load<vu>(blocks + at + j * 2 * LANES);
                    for (int g = 0; g < G; g++) {
                        const uint32_t w = load<uint32_t>(weights[g] + b * BLOCK + 2 * pair);
                        for (int j = 0; j < N; j++) sums[g][j] = dot(sums[g][j], part[j], w);
                    }
                }
            }
        }
        for (int g = 0; g < G; g++) for (int j = 0; j < N; j++) store(queries[g].state + d + j * LANES, sums[g][j]);
    }

    Team &team;
    const Lane *before = nullptr;
    std::atomic<int> kept{-1};  // the last sublayer up to which keys and values of all rows are in the cache
    const Model *m = nullptr;
    const Cache *cache = nullptr;
    const Pass *p = nullptr;
    std::vector<int> active;
    std::vector<Unit> units;
    int count = 0, split = 0;
    bool apart = false;  // no unit reads what another one writes
    const Linear *later = nullptr, *behind = nullptr;  // what comes after the sublayer, and after the last
    bf16 *normed = nullptr, *heads = nullptr, *inner = nullptr;
    float *qkv = nullptr, *partial = nullptr;
    Buffer<bf16> normed_, heads_, inner_;
    Buffer<float> qkv_, partial_;
};

class Runner {
public:
    explicit Runner(int threads) : team(threads) {}

    void pass(const Model &m, const Cache &cache, const Pass &p) {
        const Turn turn(busy);
        run(m, cache, p);
    }

    void product(const Linear &l, const float *x, int rows, float *out, const float *norm, float epsilon) {
        const Turn turn(busy);
        all.multiply(l, x, rows, out, norm, epsilon);
    }

    int draft(const Model &m, const Cache &cache, const Ends &ends, const Drafts &d) {
        const Turn turn(busy);
        return drafted(m, cache, ends, d);
    }

    void verify(const Model &m, const Cache &cache, const Ends &ends, const Verify &v) {
        const Turn turn(busy);
        verified(m, cache, ends, v);
    }

    // Both, of requests whose logits nobody edits; how many draft passes there were.
    int round(const Model &m, const Cache &cache, const Ends &ends, const Drafts &d, const Round &r) {
        const Turn turn(busy);
        const auto began = std::chrono::steady_clock::now();
        const int passes = drafted(m, cache, ends, d);
        const auto then = std::chrono::steady_clock::now();
        verified_tokens.clear(); verified_slabs.clear(); verified_positions.clear(); verified_rows.clear(); verified_sampling.clear();
        for (int i = 0; i < d.requests; i++)
            for (int n = 0; n <= d.lengths[i]; n++) {
                verified_rows.push_back(int32_t(verified_rows.size()));
                verified_tokens.push_back(d.tokens[i * (d.longest + 1) + n]);
                verified_slabs.push_back(d.slabs[i]);
                verified_positions.push_back(d.starts[i] + n);
                verified_sampling.push_back(r.sampling[i]);
            }
        const int rows = int(verified_rows.size());
        unedited.resize(rows);
        float *scores;
        verified(m, cache, ends, {r.plan, verified_tokens.data(), verified_slabs.data(), verified_positions.data(), verified_rows.data(),
                                  verified_sampling.data(), unedited.data(), nullptr, r.drawn, &scores, nullptr, rows, rows});
        r.seconds[0] = std::chrono::duration<double>(then - began).count();
        r.seconds[1] = std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
        return passes;
    }

    // Fills rows of the knapsack, one for each sublayer of the pass, until one is empty: every live state runs through it
    // and is left as it is, and by the mean cosines of these with the full model's the entries that go on are chosen.
    void fill(const Model &m, const Cache &cache, const Pass &p, const Table &t) {
        const Turn turn(busy);
        const int64_t state = int64_t(t.rows) * m.hidden;
        float *reached = t.states + t.beam * state;
        scores.resize(2 * t.beam);
        for (int index = p.first; index < p.last; index++) {
            const int row = index - p.first, live = t.live[row];
            if (!live) { std::fill(t.live + row, t.live + p.last - p.first + 1, 0); return; }
            for (int half = 0; half < 2; half++) std::memcpy(reached + half * live * state, t.states, live * state * sizeof(float));
            run(m, cache, {p.rope, reached, p.slabs, p.positions, p.plans, nullptr, 0, live * t.rows, index, index + 1, 1});
            const float *direction = t.directions + (index + 1) * state;
            team.each(2 * live, std::max(1, live / (2 * team.size)), [&](int first, int last) {
                for (int i = first; i < last; i++) {
                    float sum = 0;
                    for (int r = 0; r < t.rows; r++) sum += cosine(reached + i * state + r * m.hidden, direction + r * m.hidden, m.hidden);
                    scores[i] = sum / t.rows;
                }
            });
            enter(t, t.weights[index], t.kept[index], row);
            for (int i = 0; i < int(entries.size()); i++) {
                const Entry &e = entries[i];
                const int64_t to = int64_t(row + 1) * t.beam + i;
                t.skipped[to] = e.skipped; t.source[to] = e.source; t.ran[to] = e.ran; t.cosines[i] = e.score;
                std::memcpy(t.states + i * state, reached + (e.ran ? e.source : live + e.source) * state, state * sizeof(float));
            }
            t.live[row + 1] = int32_t(entries.size());
        }
    }

    // Reads all of it but a few lines, to no end but the time it takes: at four places at a time, as one alone does not
    // keep every memory busy.
    uint64_t read(const uint64_t *data, int64_t n) {
        const Turn turn(busy);
        std::atomic<uint64_t> sum{0};
        const int64_t share = 1 << 17;
        team.begin();
        team.each(int((n + share - 1) / share), 1, [&](int first, int last) {
            uint64_t own = 0;
            constexpr int PLACES = 4, LINE = 8;
            const int64_t from = first * share, count = (std::min(last * share, n) - from) / (PLACES * LINE) * LINE;
            vq sums[PLACES] = {};
            for (int64_t i = 0; i < count; i += LINE)
                for (int place = 0; place < PLACES; place++) {
                    const uint64_t *at = data + from + place * count + i;
                    __builtin_prefetch(at + NEAR / 4, 0, 2);
                    for (int j = 0; j < LINE; j += LANES / 2) sums[place] += load<vq>(at + j);
                }
            for (const vq &part : sums) for (int j = 0; j < LANES / 2; j++) own += part[j];
            sum += own;
        });
        return sum;
    }

private:
    // Draft passes in lock-step, which requests leave as they stop; how many there were.
    int drafted(const Model &m, const Cache &cache, const Ends &ends, const Drafts &d) {
        const size_t width = 2 * m.layers;
        std::vector<int> live(d.requests);
        std::vector<int32_t> slabs(d.requests), positions(d.requests);
        std::vector<uint8_t> plans(d.requests * width);
        std::vector<double> reach(d.requests, 1.0);
        for (int r = 0; r < d.requests; r++) { live[r] = r; d.lengths[r] = 0; }
        float *x = x_.get(size_t(d.requests) * m.hidden);
        float *logits = logits_.get(size_t(d.requests) * ends.head.out);
        for (int passes = 1;; passes++) {
            const int rows = int(live.size());
            for (int i = 0; i < rows; i++) {
                const int r = live[i], n = d.lengths[r];
                slabs[i] = d.slabs[r];
                positions[i] = d.starts[r] + n;
                std::memcpy(&plans[i * width], d.plans + r * width, width);
                embed(ends, m.hidden, d.tokens[r * (d.longest + 1) + n], x + size_t(i) * m.hidden);
            }
            run(m, cache, {ends.rope, x, slabs.data(), positions.data(), plans.data(), nullptr, int32_t(width), rows, 0, int32_t(width), 0}, &ends.head);
            all.multiply(ends.head, x, rows, logits, ends.norm, m.epsilon);
            double hope = 0;
            float worth = 0;
            int kept = 0;
            for (int i = 0; i < rows; i++) {
                const int r = live[i];
                float *row = logits + size_t(i) * ends.head.out;
                if (d.edited[r] == BEFORE) edit(d.edit, r, d.lengths[r], row);
                float sure = add_token(d, r, row, ends.head.out);
                if (d.edited[r] == AFTER && sure < d.sure && edit(d.edit, r, d.lengths[r], row)) {
                    d.lengths[r]--;
                    sure = add_token(d, r, row, ends.head.out);
                }
                reach[r] *= sure;
                const int n = d.lengths[r];
                if (n == d.most[r] || d.confidences[r * d.longest + n - 1] < d.least[r]) continue;
                live[kept++] = r;
                hope += reach[r];
                worth = std::max(worth, d.worth[r]);
            }
            live.resize(kept);
            if (!kept || hope < worth) return passes;
        }
    }

    // A pass over rows of tokens, and what is drawn behind the picked ones.
    void verified(const Model &m, const Cache &cache, const Ends &ends, const Verify &v) {
        float *x = x_.get(size_t(v.rows) * m.hidden);
        for (int i = 0; i < v.rows; i++) embed(ends, m.hidden, v.tokens[i], x + size_t(i) * m.hidden);
        run(m, cache, {ends.rope, x, v.slabs, v.positions, v.plan, v.records, 0, v.rows, 0, 2 * m.layers, 0}, &ends.head);
        if (!v.draws) return;
        for (int i = 0; i < v.draws; i++)
            if (v.picked[i] != i) std::memcpy(x + size_t(i) * m.hidden, x + size_t(v.picked[i]) * m.hidden, m.hidden * sizeof(float));
        float *logits = logits_.get(size_t(v.draws) * ends.head.out);
        all.multiply(ends.head, x, v.draws, logits, ends.norm, m.epsilon);
        for (int i = 0; i < v.draws; i++) if (v.edited[i]) edit(v.edit, i, 0, logits + size_t(i) * ends.head.out);
        all.each_row(v.draws, ends.head.out, [&](int i) {
            v.drawn[i] = int32_t(draw(logits + size_t(i) * ends.head.out, ends.head.out, v.sampling[i], v.positions[v.picked[i]] + 1, nullptr));
        });
        *v.scores = logits;
    }

    struct Entry { int64_t skipped; float score; bool ran; int32_t source; };

    // The entries of the row behind `row`, by their skipped weight: Knapsack.advance and Knapsack._prune.
    void enter(const Table &t, int64_t weight, bool kept, int row) {
        const int live = t.live[row];
        const int64_t *skipped = t.skipped + int64_t(row) * t.beam;
        entries.clear();
        for (int i = 0; i < live; i++) if (scores[i] >= t.tau || !skipped[i]) entries.push_back({skipped[i], scores[i], true, i});
        for (int i = 0; i < live && !kept; i++) {
            const Entry e{skipped[i] + weight, scores[live + i], false, i};
            if (!(e.score >= t.tau) || e.skipped > t.capacity) continue;
            auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry &other) { return other.skipped == e.skipped; });
            if (same == entries.end()) entries.push_back(e);
            else if (e.score > same->score) *same = e;
        }
        std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.skipped < b.skipped; });
        const int n = int(entries.size());
        if (n <= t.beam) return;
        double x = 0, y = 0, along = 0, spread = 0;
        for (const Entry &e : entries) { x += e.skipped; y += e.score; }
        for (const Entry &e : entries) { along += (e.skipped - x / n) * (e.score - y / n); spread += (e.skipped - x / n) * (e.skipped - x / n); }
        const double trend = along / spread, width = double(entries[n - 1].skipped - entries[0].skipped + 1) / t.beam;
        const int64_t least = entries[0].skipped;
        int last = -1, count = 0;
        for (const Entry e : entries) {  // each of equal ranges keeps what is furthest above the trend
            const int cell = int((e.skipped - least) / width);
            if (cell != last) entries[count++] = e;
            else if (e.score - trend * e.skipped > entries[count - 1].score - trend * entries[count - 1].skipped) entries[count - 1] = e;
            last = cell;
        }
        entries.resize(count);
    }

    // `later` is read behind the pass.
    void run(const Model &m, const Cache &cache, const Pass &p, const Linear *later = nullptr) {
        const bool whole = p.first == 0 && p.last == 2 * m.layers;
        if (team.size == 1 || p.rows < FEWEST || !whole || p.records || m.weights() > SMALL) {
            all.run(m, cache, p, later);
            return;
        }
        Ways &known = ways[p.rows <= MANY ? p.rows : std::min(MANY + 1 + int(std::log2(p.rows / MANY)), WIDTHS - 1)];
        const int way = known.pick();
        const auto began = std::chrono::steady_clock::now();
        if (way) by_rows(m, cache, p, later); else all.run(m, cache, p, later);
        known.took(std::chrono::duration<float>(std::chrono::steady_clock::now() - began).count());
    }

    // Each of two threads takes its rows through all layers: they meet once, but both read all weights.
    void by_rows(const Model &m, const Cache &cache, const Pass &p, const Linear *later) {
        int middle = (p.rows + 1) / 2;
        for (int off = 0; off <= p.rows / 4; off++) {  // rather between two requests
            if (p.slabs[middle + off] != p.slabs[middle + off - 1]) { middle += off; break; }
            if (p.slabs[middle - off] != p.slabs[middle - off - 1]) { middle -= off; break; }
        }
        const bool parted = p.slabs[middle] != p.slabs[middle - 1];
        const auto part = [&](int first, int last) {
            Pass some = p;
            some.x += int64_t(first) * m.hidden;
            some.slabs += first; some.positions += first; some.plans += int64_t(first) * p.plan_stride;
            some.rows = last - first;
            return some;
        };
        const Pass passes[2] = {part(0, middle), part(middle, p.rows)};
        lanes[0].rewind();
        team.each(2, 1, [&](int first, int last) {
            for (int i = first; i < last; i++) lanes[i].run(m, cache, passes[i], later, i && !parted ? lanes : nullptr);
        }, false);
    }

    static bool edit(Edit changes, int i, int drafted, float *row) {
        leave_tiles();
        return changes(i, drafted, row);
    }

    static void embed(const Ends &ends, int64_t hidden, int64_t token, float *to) {
        if (ends.wide) std::memcpy(to, static_cast<const float *>(ends.embedding) + token * hidden, hidden * sizeof(float));
        else for (int64_t i = 0; i < hidden; i++) to[i] = widen(static_cast<const bf16 *>(ends.embedding)[token * hidden + i]);
    }

    // Draws the next token of request r from its logits; its confidence.
    static float add_token(const Drafts &d, int r, float *logits, int32_t vocabulary) {
        const int n = d.lengths[r]++;
        float &confidence = d.confidences[r * d.longest + n];
        d.tokens[r * (d.longest + 1) + n + 1] = int32_t(draw(logits, vocabulary, d.sampling[r], d.starts[r] + n + 1, &confidence));
        return confidence;
    }

    // Which of two ways to do the same is faster at the moment. The other one is tried now and then, a few times together,
    // of which the first finds caches cold; the more rarely, the longer it has been slower.
    class Ways {
    public:
        int pick() {
            if (trying == 0 && ++since >= every) { since = 0; trying = TRIES; tried = 0; }
            return trying ? !better : better;
        }
        void took(float now) {
            if (!trying) {
                known += known == 0 ? now : 0.1f * (std::min(now, 2 * known) - known);
                return;
            }
            if (trying-- < TRIES) tried += now / (TRIES - 1);
            if (trying) return;
            if (tried < known) { better = !better; known = tried; every = SOON; } else every = std::min(2 * every, LATE);
        }

    private:
        static constexpr int TRIES = 5, SOON = 32, LATE = 512;
        float known = 0, tried = 0;  // seconds of the better one, and of the other
        int better = 0, trying = 0, since = 0, every = SOON;
    };

    Team team, alone{1};
    Lane all{team}, lanes[2] = {Lane(alone), Lane(alone)};
    static constexpr int FEWEST = 3, MANY = 16, WIDTHS = MANY + 8;  // rows
    Ways ways[WIDTHS];  // by the number of rows
    struct Turn {  // of one call
        explicit Turn(std::mutex &busy) : one(busy) {}
        ~Turn() { leave_tiles(); }
        std::lock_guard<std::mutex> one;
    };
    std::mutex busy;
    std::vector<float> scores;   // of the knapsack's states, run and left as they are,
    std::vector<Entry> entries;  // and what goes on
    std::vector<int32_t> verified_tokens, verified_slabs, verified_positions, verified_rows;
    std::vector<Sampling> verified_sampling;
    std::vector<uint8_t> unedited;
    Buffer<float> x_, logits_;
};

}  // namespace

extern "C" {

// A team of threads with its scratch memory; one pass at a time. It lives as long as the process, for at exit a pass may
// still be running.
void *ks_team(int threads) { return new Runner(threads); }

uint64_t ks_read(void *team, const uint64_t *data, int64_t bytes) {
    return static_cast<Runner *>(team)->read(data, bytes / 8);
}

// [out][in] to panels; outputs beyond the last are zeros. `gated`: a panel is 16 outputs of the first half and the same
// 16 of the second.
void ks_pack(const bf16 *w, int64_t out, int64_t in, bf16 *to, int gated) {
    for (int64_t panel = 0; panel * PANEL < out; panel++)
        for (int64_t k = 0; k < in; k += 2)
            for (int64_t j = 0; j < PANEL; j++, to += 2) {
                const int64_t row = gated ? panel * (PANEL / 2) + j % (PANEL / 2) + j / (PANEL / 2) * (out / 2) : panel * PANEL + j;
                to[0] = row < out ? w[row * in + k] : 0;
                to[1] = row < out ? w[row * in + k + 1] : 0;
            }
}

void ks_pass(void *team, const Model *model, const Cache *cache, const Pass *pass) {
    static_cast<Runner *>(team)->pass(*model, *cache, *pass);
}

// `pass` has live·rows rows, one sublayer, and room at x for twice as many rows.
void ks_fill(void *team, const Model *model, const Cache *cache, const Pass *pass, const Table *table) {
    static_cast<Runner *>(team)->fill(*model, *cache, *pass, *table);
}

int ks_draft(void *team, const Model *model, const Cache *cache, const Ends *ends, const Drafts *drafts) {
    return static_cast<Runner *>(team)->draft(*model, *cache, *ends, *drafts);
}

int ks_round(void *team, const Model *model, const Cache *cache, const Ends *ends, const Drafts *drafts, const Round *round) {
    return static_cast<Runner *>(team)->round(*model, *cache, *ends, *drafts, *round);
}

void ks_verify(void *team, const Model *model, const Cache *cache, const Ends *ends, const Verify *verify) {
    static_cast<Runner *>(team)->verify(*model, *cache, *ends, *verify);
}

// x [rows][in] f32, normed if there is a norm's weight -> out [rows][l.out] f32.
void ks_product(void *team, const Linear *l, const float *x, int rows, float *out, const float *norm, float epsilon) {
    static_cast<Runner *>(team)->product(*l, x, rows, out, norm, epsilon);
}

// Leaves the scores of tokens whose bit is set.
void ks_mask(float *scores, const uint32_t *bits, int32_t n) {
    for (int32_t i = 0; i < n; i++) scores[i] = bits[i / 32] >> i % 32 & 1 ? scores[i] : NEVER;
}

// Of each row of logits [rows][n], at its position: `draw`. Shares only if asked for.
void ks_draw(const float *logits, int rows, int32_t n, const Sampling *sampling, const int64_t *positions, int64_t *tokens, float *shares) {
    std::vector<float> copy;
    for (int r = 0; r < rows; r++) {
        const float *row = logits + int64_t(r) * n;
        if (sampling[r].temperature > 0) {
            copy.assign(row, row + n);
            row = copy.data();
        }
        tokens[r] = draw(const_cast<float *>(row), n, sampling[r], positions[r], shares ? shares + r : nullptr);
    }
}

}
