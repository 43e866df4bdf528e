// Products of rows with the panels of a linear layer in bf16. packed_products.h does the same for packed weights.

#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "packed_products.h"
#include "structures.h"
#include "thread_pool.h"
#include "vectors.h"

namespace {

constexpr int PREFETCH_WEIGHTS = 4096;  // 8 KB: how far ahead of a product many rows fetch their weights

// AVX2: pairs of inputs in a strip, and how many weights ahead it prefetches. Half a panel is multiplied at a time.
// Tried on layers of Qwen2.5-0.5B's size with three to six rows: 32 to 128 pairs, 1,024 to 8,192 weights. These two
// were fastest, a fifth faster than whole panels.
constexpr int STRIP_PAIRS = 64, STRIP_PREFETCH_WEIGHTS = 2048;

// Multiplies R rows x with vectors first … first + N - 1 of a panel and the next one, over `pairs` pairs of inputs.
// `half_panel`: elements of half a panel. `begin`: start sums from zero.
template <int R, int N, bool PREFETCH>
inline void strip(const float (&x)[R][2 * STRIP_PAIRS], const bf16 *w, const bf16 *next, int64_t panel_stride,
                  int64_t half_panel, int pairs, int first, bool begin, float (*out)[2 * PANEL]) {
    constexpr int VECTORS = PANEL / LANES;
    const auto at = [&](int j) {
        const int v = (first + j) % VECTORS;
        return j / VECTORS * panel_stride + v / 2 * half_panel + v % 2 * 2 * LANES;
    };
    vf sums[R][N];
    for (int r = 0; r < R; r++)
        for (int j = 0; j < N; j++) sums[r][j] = begin ? vf{} : load<vf>(out[r] + (first + j) * LANES);
    for (int k = 0; k < pairs; k++) {
        const int64_t here = int64_t(k) * PANEL;
        if (PREFETCH)
            for (int j = 0; j < N; j += 2) __builtin_prefetch(next + here + at(j), 0, 3);
        dots<R, N>(sums, w + here, at, [&](int r) { return x[r] + 2 * k; });
    }
    for (int r = 0; r < R; r++)
        for (int j = 0; j < N; j++) store(out[r] + (first + j) * LANES, sums[r][j]);
}

// Panels to prefetch while others are multiplied.
struct PrefetchTarget {
    const bf16 *w;
    int64_t panel_stride;
};

// multiply_panels for AVX2: whole panels for one or two rows, otherwise half a panel at a time.
template <int R, int P, bool PREFETCH_NEXT>
void multiply_panels_avx2(const bf16 *x, int64_t stride, const bf16 *w, PrefetchTarget ahead, int64_t panel_stride,
                          int pairs, float (*out)[2 * PANEL]) {
    constexpr int N = R <= 2 ? 4 * P : 2;
    static_assert(P == 1 || N == 4 * P, "a strip of two panels begins at the first");
    const bf16 *const next = PREFETCH_NEXT ? ahead.w : w + STRIP_PREFETCH_WEIGHTS;
    for (int k = 0; k < pairs; k += STRIP_PAIRS) {
        const int some = std::min(STRIP_PAIRS, pairs - k);
        float wide[R][2 * STRIP_PAIRS];
        for (int r = 0; r < R; r++) to_float(x + r * stride + 2 * k, 2 * some, wide[r]);
        const int64_t at = int64_t(k) * PANEL;
        for (int first = 0; first < 4 * P; first += N)
            strip<R, N, PREFETCH_NEXT || P == 1>(wide, w + at, next + at, panel_stride, int64_t(pairs) * PANEL, some,
                                                 first, k == 0, out);
    }
}

// Multiplies R rows with P neighbouring panels, which are read once, and prefetches: with PREFETCH_NEXT the panels at
// `ahead`, otherwise what comes soon, if the hardware does not look far enough ahead by itself (three rows or more, or
// one panel).
template <int R, int P, bool PREFETCH_NEXT>
void multiply_panels(const bf16 *x, int64_t stride, const bf16 *w, PrefetchTarget ahead, int64_t panel_stride,
                     int pairs, float (*out)[2 * PANEL]) {
    vf sums[R][2 * P] = {};
    const auto some = [&](int first, int last, const bf16 *next, int64_t next_apart, auto fetch) {
        for (int k = first; k < last; k++) {
            vu part[2 * P];
            for (int j = 0; j < 2 * P; j++) {
                part[j] = load<vu>(w + (j / 2) * panel_stride + k * 2 * PANEL + (j % 2) * PANEL);
                if (decltype(fetch)::value)
                    __builtin_prefetch(next + (j / 2) * next_apart + (k * 2 + j % 2) * PANEL, 0, 2);
            }
            for (int r = 0; r < R; r++) {
                const uint32_t pair = load<uint32_t>(x + r * stride + 2 * k);
                for (int j = 0; j < 2 * P; j++) sums[r][j] = dot(sums[r][j], part[j], pair);
            }
        }
    };
    const int here = PREFETCH_NEXT ? pairs : std::max(0, pairs - PREFETCH_WEIGHTS / (2 * PANEL));
    some(0, here, PREFETCH_NEXT ? ahead.w : w + PREFETCH_WEIGHTS, panel_stride,
         std::bool_constant<(PREFETCH_NEXT || P == 1 || R > 2)>{});
    if (here < pairs) some(here, pairs, ahead.w - here * 2 * PANEL, ahead.panel_stride, std::true_type{});
    for (int r = 0; r < R; r++)
        for (int j = 0; j < 2 * P; j++) store(out[r] + j * LANES, sums[r][j]);
}

// Most rows for two panels, and for one: 32 registers (AVX2: 16) hold 24 (12) sums, the weights and a pair of inputs.
constexpr int MAX_ROWS_TWO_PANELS = AVX2_ONLY ? 1 : 6, MAX_ROWS_ONE_PANEL = AVX2_ONLY ? 6 : 12;
using PanelKernel = void (*)(const bf16 *, int64_t, const bf16 *, PrefetchTarget, int64_t, int, float (*)[2 * PANEL]);
template <int R, int P, bool PREFETCH_NEXT>
constexpr PanelKernel panel_kernel_of() {
    if constexpr (AVX2_ONLY) return multiply_panels_avx2<R, P, PREFETCH_NEXT>;
    else return multiply_panels<R, P, PREFETCH_NEXT>;
}
template <int P, bool PREFETCH_NEXT, int... R>
PanelKernel panel_kernel(int rows, std::integer_sequence<int, R...>) {
    static constexpr PanelKernel all[] = {panel_kernel_of<R + 1, P, PREFETCH_NEXT>()...};
    return all[rows - 1];
}
template <int P, bool PREFETCH_NEXT>
PanelKernel panel_kernel(int rows) {
    return panel_kernel<P, PREFETCH_NEXT>(
        rows, std::make_integer_sequence<int, P == 2 ? MAX_ROWS_TWO_PANELS : MAX_ROWS_ONE_PANEL>());
}

// The same with AMX: up to sixteen rows take little longer than one. Sums run in another order than above, so a layer
// uses AMX either for any number of rows or never.

enum PrefetchMode {
    PREFETCH_NOTHING,
    PREFETCH_FOLLOWING,
    PREFETCH_NEXT_PANELS
};  // the panels that follow at once, or those of `ahead`
#ifdef WITH_AMX
// multiply_panels for as many rows as configure_amx was told.
template <int P, PrefetchMode fetch>
void multiply_panels_amx(const bf16 *x, int64_t stride, const bf16 *w, PrefetchTarget ahead, int64_t panel_stride,
                         int pairs, float (*out)[2 * PANEL]) {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (P == 2) {
        _tile_zero(2);
        _tile_zero(3);
    }
    asm volatile("" ::: "memory");
    for (int k = 0; k < pairs; k += AMX_PAIRS) {
        const int beyond = fetch == PREFETCH_NEXT_PANELS ? k : k + AMX_PAIRS - pairs;
        const bf16 *at = w + int64_t(k) * 2 * PANEL;
        const PrefetchTarget next = beyond < 0
                                        ? PrefetchTarget{at + AMX_PAIRS * 2 * PANEL, panel_stride}
                                        : PrefetchTarget{ahead.w + int64_t(beyond) * 2 * PANEL, ahead.panel_stride};
        const auto ask = [&](int quarter) {
            if (fetch == PREFETCH_NOTHING) return;
            for (int i = 0; i < AMX_PAIRS / 2; i++)
                for (int j = 0; j < P; j++)
                    __builtin_prefetch(next.w + j * next.panel_stride + (quarter * AMX_PAIRS / 2 + i) * PANEL, 0,
                                       fetch == PREFETCH_FOLLOWING ? 3 : 2);
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
            _tile_loadd(7, at + panel_stride, 4 * PANEL);
            _tile_dpbf16ps(2, 4, 7);
        }
        ask(3);
        if constexpr (P == 2) {
            _tile_loadd(5, at + panel_stride + PANEL, 4 * PANEL);
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
inline bool uses_amx(const Linear &l) { return HAS_AMX && l.in % (2 * AMX_PAIRS) == 0; }
template <int P>
PanelKernel panel_kernel_amx(PrefetchMode fetch) {
    return fetch == PREFETCH_FOLLOWING     ? multiply_panels_amx<P, PREFETCH_FOLLOWING>
           : fetch == PREFETCH_NEXT_PANELS ? multiply_panels_amx<P, PREFETCH_NEXT_PANELS>
                                           : multiply_panels_amx<P, PREFETCH_NOTHING>;
}
#else
inline bool uses_amx(const Linear &) { return false; }
template <int P>
PanelKernel panel_kernel_amx(PrefetchMode) {
    return nullptr;
}
#endif

// How the panels of a linear layer are shared out: units of one or two panels, several units a share.
struct PanelSchedule {
    PanelSchedule(const Linear &l, int rows, int threads)
        : panel_size(int64_t(l.in) * PANEL), panels((l.out + PANEL - 1) / PANEL) {
        panels_per_unit = (rows <= MAX_ROWS_TWO_PANELS || uses_amx(l)) && panels >= 4 * threads ? 2 : 1;
        units = (panels + panels_per_unit - 1) / panels_per_unit;
        units_per_share = int(std::max<int64_t>(
            1, std::min<int64_t>((128 << 10) / (panels_per_unit * panel_size), units / (4 * threads))));
    }
    // Returns the first unit of a thread that goes forward from the first share, or backward from the last.
    int first_unit(bool backward, const ThreadPool &pool) const {
        const int shares = (units + units_per_share - 1) / units_per_share;
        return backward
                   ? std::max(0, shares - pool.worker_shares(shares - pool.caller_shares(shares))) * units_per_share
                   : 0;
    }
    int64_t panel_size;
    int panels, panels_per_unit, units, units_per_share;
};

// Computes the products of x [rows][in] with all panels. write(row, column, sums, columns) receives those of one or two
// panels. `next_linear`: the layer probably multiplied with next, to prefetch; may be null.
template <class Write>
void multiply_linear(ThreadPool &pool, const Linear &l, const bf16 *x, int rows, const Linear *next_linear,
                     Write write) {
    if (!rows) return;
    if (l.parts) {
        multiply_packed(pool, l, x, rows, write);
        return;
    }
    const PanelSchedule schedule(l, rows, pool.size), next_schedule(next_linear ? *next_linear : l, rows, pool.size);
    const bool on_amx = uses_amx(l);
    const int most = on_amx ? AMX_ROWS : MAX_ROWS_ONE_PANEL, blocks = (rows + most - 1) / most;
    const auto panel_of = [&](int unit) { return l.w + unit * schedule.panels_per_unit * schedule.panel_size; };
    pool.parallel_for(schedule.units, schedule.units_per_share, [&](const Range &range) {
        float sums[AMX_ROWS][2 * PANEL];
        if (on_amx) configure_amx(std::min(rows, AMX_ROWS));
        const int from = next_schedule.first_unit(range.backward, pool);
        const PrefetchTarget last =
            range.next >= 0 ? PrefetchTarget{panel_of(range.next), schedule.panel_size}
                            : PrefetchTarget{(next_linear ? next_linear->w : l.w) +
                                                 from * next_schedule.panels_per_unit * next_schedule.panel_size,
                                             next_schedule.panel_size};
        for (int unit = range.first; unit < range.last; unit++) {
            const int panel = unit * schedule.panels_per_unit;
            const bool two = schedule.panels_per_unit == 2 && panel + 1 < schedule.panels;
            const PrefetchTarget next =
                unit + 1 < range.last ? PrefetchTarget{panel_of(unit + 1), schedule.panel_size} : last;
            for (int b = 0, row = 0; b < blocks; b++) {
                // Blocks of rows after the first read the panel from cache, which leaves time to fetch the next panel.
                const bool ahead = blocks > 1 && b == blocks - 1;
                int count = (rows - row) / (blocks - b);  // rows of this block
                int overlap = 0;                          // rows that the block before computes as well
                PanelKernel run;
                if (on_amx) {
                    count = std::min(rows - row, AMX_ROWS);
                    if (blocks > 1) overlap = AMX_ROWS - count;
                    const PrefetchMode fetch = blocks == 1 ? PREFETCH_FOLLOWING
                                               : ahead     ? PREFETCH_NEXT_PANELS
                                                           : PREFETCH_NOTHING;
                    run = two ? panel_kernel_amx<2>(fetch) : panel_kernel_amx<1>(fetch);
                } else {
                    run = two     ? panel_kernel<2, false>(count)
                          : ahead ? panel_kernel<1, true>(count)
                                  : panel_kernel<1, false>(count);
                }
                run(x + int64_t(row - overlap) * l.in, l.in, panel_of(unit), next, schedule.panel_size, l.in / 2, sums);
                for (int r = 0; r < count; r++)
                    write(row + r, panel * PANEL, sums[overlap + r], two ? 2 * PANEL : PANEL);
                row += count;
            }
        }
    });
}

}  // namespace
