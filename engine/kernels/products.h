// Linear layers: products of a few rows with packed weights.

#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "packed.h"
#include "structures.h"
#include "team.h"
#include "vectors.h"

namespace {

constexpr int NEAR = 4096;       // weights, 8 KB, that many rows ask for before they need them

// Sixteen registers: half a panel at a time, whose weights lie together. Pairs of inputs that make a strip, and how many weights
// ahead it asks for: of 32 to 128 pairs and 1,024 to 8,192 weights these read layers of Qwen2.5-0.5B's size fastest, for three
// to six rows, a fifth faster than whole panels did.
constexpr int NEARBY = 64, NARROW_NEAR = 2048;

// Products of R rows x with vectors first … first + N - 1 of outputs, of a panel and the next one, over some pairs of
// inputs. `half`: elements of half a panel.
template <int R, int N, bool FETCH>
inline void strip(const float (&x)[R][2 * NEARBY], const bf16 *w, const bf16 *next, int64_t apart, int64_t half, int pairs, int first,
                  bool begin, float (*out)[2 * PANEL]) {
    constexpr int VECTORS = PANEL / LANES;
    const auto at = [&](int j) { const int v = (first + j) % VECTORS; return j / VECTORS * apart + v / 2 * half + v % 2 * 2 * LANES; };
    vf sums[R][N];
    for (int r = 0; r < R; r++)
        for (int j = 0; j < N; j++) sums[r][j] = begin ? vf{} : load<vf>(out[r] + (first + j) * LANES);
    for (int k = 0; k < pairs; k++) {
        const int64_t here = int64_t(k) * PANEL;
        if (FETCH) for (int j = 0; j < N; j += 2) __builtin_prefetch(next + here + at(j), 0, 3);
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
    const bf16 *const next = AHEAD ? ahead.w : w + NARROW_NEAR;
    for (int k = 0; k < pairs; k += NEARBY) {
        const int some = std::min(NEARBY, pairs - k);
        float wide[R][2 * NEARBY];
        for (int r = 0; r < R; r++) widen(x + r * stride + 2 * k, 2 * some, wide[r]);
        const int64_t at = int64_t(k) * PANEL;
        for (int first = 0; first < 4 * P; first += N)
            strip<R, N, AHEAD || P == 1>(wide, w + at, next + at, apart, int64_t(pairs) * PANEL, some, first, k == 0, out);
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
    if (l.parts) { packed_products(team, l, x, rows, write); return; }
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

}  // namespace
