// Attention over a tile of the K/V cache, for the queries that read it together.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "structures.h"
#include "vectors.h"

namespace {

constexpr int TILE = 64;         // positions whose scores are computed before they are weighed

class TileReader {
protected:
    int state_size() const { return m->head_dim + LANES; }  // weighted values, then highest score and sum of weights
    float scale() const { return 1.f / std::sqrt(float(m->head_dim)); }

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

    const Model *m = nullptr;
};

}  // namespace
