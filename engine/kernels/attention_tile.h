// Softmax attention of a few queries over one tile of the K/V cache. context_attention.h loops over tiles and requests.
//
// A state of head_dim + LANES floats accumulates one query's result: the sum of weighted values, then the highest score
// so far, then the sum of weights. kernels.cpp describes the blocks of the cache.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "structures.h"
#include "vectors.h"

namespace {

constexpr int TILE = 64;  // positions of a tile: four blocks of the cache

// The blocks of one kv head that hold a tile's positions.
struct Tile {
    const bf16 *block[TILE / BLOCK];
};

class TileAttention {
protected:
    int state_size() const { return m->head_dim + LANES; }  // floats
    float scale() const { return 1.f / std::sqrt(float(m->head_dim)); }

    // One row's query for one head: where its result accumulates, and which positions from … to - 1 it sees.
    struct Query {
        const bf16 *q;
        float *state;
        int from, to;
        // Returns how many of a tile's blocks, from the first, the query needs.
        int blocks_of(int tile) const {
            if (from >= to || from >= tile + TILE || to <= tile) return 0;
            return (std::min(to, tile + TILE) - tile + BLOCK - 1) / BLOCK;
        }
    };

    // Queries that read a tile together: as many as fit into registers.
    static constexpr int MAX_QUERIES = AVX2_ONLY ? 4 : 6;
    static int max_queries() { return HAS_AMX ? AMX_ROWS : MAX_QUERIES; }

#ifdef WITH_AMX
    // Copies the vectors of all queries next to each other, as AMX tiles load them.
    void gather_queries(std::vector<Query> &queries) const {
        thread_local std::vector<bf16> gathered;
        const size_t width = m->head_dim;
        gathered.resize(std::max(gathered.size(), queries.size() * width));
        for (size_t i = 0; i < queries.size(); i++) {
            std::memcpy(&gathered[i * width], queries[i].q, width * sizeof(bf16));
            queries[i].q = &gathered[i * width];
        }
    }

    // Does what attend_tile does with AMX. Sums run in another order, which is the same for any number of queries.
    void attend_tile_amx(int count, const Query *queries, const Tile &blocks, const Tile *next_tile, int used,
                         int tile) const {
        alignas(64) float scores[AMX_ROWS][TILE];
        alignas(64) bf16 weights[AMX_ROWS][TILE];
        const int width = m->head_dim;
        configure_amx(count, true);
        asm volatile("" ::: "memory");
        for (int half = 0; half < 2; half++) {
            const bf16 *const *keys = blocks.block + 2 * half;
            const bf16 *const *soon = next_tile ? next_tile->block + 2 * half : nullptr;
            _tile_zero(0);
            _tile_zero(1);
            for (int d = 0; d < width; d += 2 * AMX_PAIRS) {
                const auto ask = [&](int b) {
                    if (soon)
                        for (int i = 0; i < AMX_PAIRS; i++) __builtin_prefetch(soon[b] + (d / 2 + i) * 2 * BLOCK, 0, 2);
                };
                _tile_loadd(4, queries->q + d, width * 2);
                ask(0);
                _tile_loadd(2, keys[0] + d * BLOCK, 4 * BLOCK);
                _tile_dpbf16ps(0, 4, 2);
                ask(1);
                _tile_loadd(3, keys[1] + d * BLOCK, 4 * BLOCK);
                _tile_dpbf16ps(1, 4, 3);
            }
            _tile_stored(0, scores[0] + half * 2 * BLOCK, sizeof scores[0]);
            _tile_stored(1, scores[0] + half * 2 * BLOCK + BLOCK, sizeof scores[0]);
        }
        asm volatile("" ::: "memory");
        for (int i = 0; i < count; i++) {
            vf qk[VECTORS];
            for (int v = 0; v < VECTORS; v++) qk[v] = load<vf>(scores[i] + v * LANES);
            softmax_tile(queries[i], qk, used, tile, weights[i]);
        }
        asm volatile("" ::: "memory");
        const int64_t state_stride = state_size() * sizeof(float);
        for (int d = 0; d < width; d += 2 * BLOCK) {
            float *state = queries->state + d;
            _tile_loadd(0, state, state_stride);
            _tile_loadd(1, state + BLOCK, state_stride);
            for (int b = 0; b < used; b++) {
                const bf16 *values = blocks.block[b] + BLOCK * width + 2 * d;
                if (next_tile)
                    for (int i = 0; i < BLOCK / 2; i++) {
                        const bf16 *soon = next_tile->block[b] + BLOCK * width + 2 * d + i * 2 * width;
                        __builtin_prefetch(soon, 0, 2);
                        __builtin_prefetch(soon + 2 * BLOCK, 0, 2);
                    }
                _tile_loadd(5, weights[0] + b * BLOCK, sizeof weights[0]);
                _tile_loadd(6, values, 4 * width);
                _tile_dpbf16ps(0, 5, 6);
                _tile_loadd(7, values + 2 * BLOCK, 4 * width);
                _tile_dpbf16ps(1, 5, 7);
            }
            _tile_stored(0, state, state_stride);
            _tile_stored(1, state + BLOCK, state_stride);
        }
        asm volatile("" ::: "memory");
    }
#else
    void gather_queries(std::vector<Query> &) const {}
    void attend_tile_amx(int, const Query *, const Tile &, const Tile *, int, int) const {}
#endif

    void attend_tile(int count, const Query *queries, const Tile &blocks, const Tile *next_tile, int used,
                     int tile) const {
        switch (count) {
        case 1: return attend_tile<1>(queries, blocks, next_tile, used, tile);
        case 2: return attend_tile<2>(queries, blocks, next_tile, used, tile);
        case 3: return attend_tile<3>(queries, blocks, next_tile, used, tile);
        case 4: return attend_tile<4>(queries, blocks, next_tile, used, tile);
        case 5:
            if constexpr (MAX_QUERIES >= 5) return attend_tile<5>(queries, blocks, next_tile, used, tile);
            break;
        case 6:
            if constexpr (MAX_QUERIES >= 6) return attend_tile<6>(queries, blocks, next_tile, used, tile);
            break;
        }
    }

    template <int G>
    void attend_tile(const Query *queries, const Tile &blocks, const Tile *next_tile, int used, int tile) const {
        alignas(64) bf16 weights[G][TILE];
        vf qk[G][VECTORS] = {};
        if constexpr (AVX2_ONLY) dot_keys_avx2<G>(queries, blocks, next_tile, used, qk);
        else switch (used) {
            case 1:
            case 2: dot_keys<G, 2>(queries, blocks, next_tile, qk); break;
            case 3: dot_keys<G, 3>(queries, blocks, next_tile, qk); break;
            default: dot_keys<G, VECTORS>(queries, blocks, next_tile, qk);
            }
        for (int g = 0; g < G; g++) softmax_tile(queries[g], qk[g], used, tile, weights[g]);
        add_weighted_values<G>(queries, blocks, next_tile, used, weights);
    }

    // Vectors of a tile's scores; where vector v's keys are, for the first two dimensions.
    static constexpr int VECTORS = TILE / LANES;
    static const bf16 *keys_of(const Tile &tile, int v) {
        return tile.block[v * LANES / BLOCK] + v * LANES % BLOCK * 2;
    }

    // Computes q · k for the first N blocks of a tile and G queries.
    template <int G, int N>
    void dot_keys(const Query *queries, const Tile &blocks, const Tile *next_tile, vf (&qk)[G][VECTORS]) const {
        for (int d = 0; d < m->head_dim / 2; d++) {
            vu keys[N];
            for (int v = 0; v < N; v++) {
                keys[v] = load<vu>(keys_of(blocks, v) + d * 2 * BLOCK);
                if (next_tile) __builtin_prefetch(keys_of(*next_tile, v) + d * 2 * BLOCK, 0, 2);
            }
            for (int g = 0; g < G; g++) {
                const uint32_t pair = load<uint32_t>(queries[g].q + 2 * d);
                for (int v = 0; v < N; v++) qk[g][v] = dot(qk[g][v], keys[v], pair);
            }
        }
    }

    // The same for sixteen registers. Computes only used blocks, and perhaps one more.
    template <int G>
    void dot_keys_avx2(const Query *queries, const Tile &blocks, const Tile *next_tile, int used,
                       vf (&qk)[G][VECTORS]) const {
        constexpr int N = G <= 2 ? 4 : 2;
        const int width = m->head_dim;
        thread_local std::vector<float> wide;
        if (wide.size() < size_t(G * width)) wide.resize(G * width);
        for (int g = 0; g < G; g++) to_float(queries[g].q, width, wide.data() + g * width);
        const float *x = wide.data();
        for (int first = 0; first < used * (BLOCK / LANES); first += N) {
            vf sums[G][N] = {};
            for (int d = 0; d < width / 2; d++) {
                const bf16 *start = blocks.block[0];
                const auto at = [&](int j) { return keys_of(blocks, first + j) - start; };
                if (next_tile)
                    for (int j = 0; j < N; j += 2)
                        __builtin_prefetch(keys_of(*next_tile, first + j) + d * 2 * BLOCK, 0, 2);
                dots<G, N>(sums, start + d * 2 * BLOCK, at, [&](int g) { return x + g * width + 2 * d; });
            }
            for (int g = 0; g < G; g++)
                for (int j = 0; j < N; j++) qk[g][first + j] = sums[g][j];
        }
    }

    // Turns a tile's products into weights e^(score - highest) and rescales the state to the new highest score. One
    // copy of the code: the compiler must round alike for any group of queries.
    ONE_COPY void softmax_tile(const Query &query, vf *qk, int blocks_used, int tile, bf16 *weights) const {
        const int width = m->head_dim, used = blocks_used * (BLOCK / LANES);
        const float scale = this->scale();
        const bool whole = query.from <= tile && tile + TILE <= query.to;
        vf top = splat(MINUS_INFINITY);
        for (int v = 0; v < used; v++) {
            vf s = qk[v] * scale;
            if (!whole) {
                const vi at = lane_numbers() + (tile + v * LANES);
                s = at < query.from ? splat(MINUS_INFINITY) : s;
                s = at >= query.to ? splat(MINUS_INFINITY) : s;
            }
            qk[v] = s;
            top = top > s ? top : s;
        }
        float *state = query.state;
        const float before = state[width], high = std::max(before, max_lane(top));
        const float factor = before == high ? 1.f : before == MINUS_INFINITY ? 0.f : exponential(before - high);
        vf sum{};
        for (int v = 0; v < used; v++) {
            const vf w = exponential(qk[v] - high);
            sum += w;
            store(weights + v * LANES, to_bf16(w));
        }
        state[width] = high;
        state[width + 1] = state[width + 1] * factor + sum_lanes(sum);
        if (factor != 1.f)
            for (int d = 0; d < width; d += LANES) store(state + d, load<vf>(state + d) * factor);
    }

    // Adds a tile's weighted values to the states of G queries.
    template <int G>
    void add_weighted_values(const Query *queries, const Tile &blocks, const Tile *next_tile, int used,
                             const bf16 (*weights)[TILE]) const {
        constexpr int N = AVX2_ONLY && G > 2 ? 2 : 4;
        float wide[AVX2_ONLY ? G : 1][TILE];
        if (AVX2_ONLY)
            for (int g = 0; g < G; g++) to_float(weights[g], used * BLOCK, wide[g]);
        int d = 0;
        for (; d + N * LANES <= m->head_dim; d += N * LANES)
            add_values<G, N>(queries, blocks, next_tile, used, d, weights, wide);
        if constexpr (N > 2)
            if (d < m->head_dim) add_values<G, 2>(queries, blocks, next_tile, used, d, weights, wide);
    }

    // Adds N vectors of dimensions, from d on.
    template <int G, int N, class Wide>
    void add_values(const Query *queries, const Tile &blocks, const Tile *next_tile, int used, int d,
                    const bf16 (*weights)[TILE], const Wide &wide) const {
        const int width = m->head_dim;
        vf sums[G][N];
        for (int g = 0; g < G; g++)
            for (int j = 0; j < N; j++) sums[g][j] = load<vf>(queries[g].state + d + j * LANES);
        for (int b = 0; b < used; b++) {
            for (int pair = 0; pair < BLOCK / 2; pair++) {
                const int64_t at = BLOCK * width + 2 * d + pair * 2 * width;
                const bf16 *values = blocks.block[b] + at;
                if (next_tile)
                    for (int j = 0; j < N; j += 32 / (2 * LANES))
                        __builtin_prefetch(next_tile->block[b] + at + j * 2 * LANES, 0, 2);
                if constexpr (AVX2_ONLY) {
                    const auto vector = [](int j) { return j * 2 * LANES; };
                    dots<G, N>(sums, values, vector, [&](int g) { return wide[g] + b * BLOCK + 2 * pair; });
                } else {
                    vu part[N];
                    for (int j = 0; j < N; j++) part[j] = load<vu>(values + j * 2 * LANES);
                    for (int g = 0; g < G; g++) {
                        const uint32_t w = load<uint32_t>(weights[g] + b * BLOCK + 2 * pair);
                        for (int j = 0; j < N; j++) sums[g][j] = dot(sums[g][j], part[j], w);
                    }
                }
            }
        }
        for (int g = 0; g < G; g++)
            for (int j = 0; j < N; j++) store(queries[g].state + d + j * LANES, sums[g][j]);
    }

    const Model *m = nullptr;
};

}  // namespace
