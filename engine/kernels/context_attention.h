// Attention of a pass's rows over their contexts: which thread scans which part, and how parts become one softmax.
// LayerPass (layer_pass.h) calls plan_units and attend; attention_tile.h computes single tiles.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "attention_tile.h"
#include "buffer.h"
#include "structures.h"
#include "thread_pool.h"
#include "vectors.h"

namespace {

constexpr int PART_POSITIONS = 1024;  // positions of a part of the context, which threads may share out
constexpr int UNIT_ROWS = 16;         // rows of a request that read the cache together
constexpr int MAX_SPLIT_ROWS = 32;    // most rows of a pass whose contexts are shared out in parts
constexpr int ALL_PARTS = -1;         // AttentionUnit::part: the unit scans all parts of its context
constexpr int SINKS_PART = -2;  // AttentionUnit::part: the first positions, which WINDOW sees besides the last ones

// Neighbouring active rows of one slab, from number `first` on, and the part of the context that they scan.
struct AttentionUnit {
    int first, count, part;
};

class ContextAttention : protected TileAttention {
protected:
    explicit ContextAttention(ThreadPool &pool) : pool(pool) {}

    // Divides the attention of the active rows into units of neighbouring rows of one slab. If rows and heads are too
    // few to occupy the pool, each part of a context becomes a unit of its own, merged afterwards.
    void plan_units() {
        units.clear();
        int parts = 1;
        for (int i = 0; i < active_count;) {
            int n = 1;
            while (i + n < active_count && n < UNIT_ROWS && p->slabs[active[i + n]] == p->slabs[active[i]]) n++;
            units.push_back({i, n, ALL_PARTS});
            for (int r = 0; r < n; r++) parts = std::max(parts, p->positions[active[i + r]] / PART_POSITIONS + 1);
            i += n;
        }
        part_count = parts > 1 && active_count <= MAX_SPLIT_ROWS && int(units.size()) * m->kv_heads < 4 * pool.size
                         ? parts + 1
                         : 0;
        units_independent = !part_count;
        for (size_t u = 1; u < units.size(); u++) units_independent &= slab_of(units[u]) != slab_of(units[u - 1]);
        if (!part_count) return;
        std::vector<AttentionUnit> whole;
        whole.swap(units);
        for (const AttentionUnit &unit : whole) {
            const auto [first, last] = part_range(unit);
            for (int part = first; part <= last; part++) units.push_back({unit.first, unit.count, part});
            if (sinks) units.push_back({unit.first, unit.count, SINKS_PART});
        }
        partial = partial_.get(size_t(active_count) * m->heads * part_count * state_size());
    }

    int slab_of(const AttentionUnit &unit) const { return p->slabs[active[unit.first]]; }

    // Returns the first and last part of the context that any row of the unit sees.
    std::pair<int, int> part_range(const AttentionUnit &unit) const {
        int first = 1 << 30, last = 0;
        for (int r = 0; r < unit.count; r++) {
            const int position = p->positions[active[unit.first + r]];
            first = std::min(first, first_visible(position) / PART_POSITIONS);
            last = std::max(last, position / PART_POSITIONS);
        }
        return {first, last};
    }

    int first_visible(int position) const { return window ? std::max(0, position + 1 - window) : 0; }

    // Returns the positions from … to - 1 that a row sees of the context, or of the sinks before it.
    std::pair<int, int> visible(int position, bool beginning) const {
        return beginning ? std::pair(0, std::min(sinks, first_visible(position)))
                         : std::pair(first_visible(position), position + !p->read_only);
    }

    // Returns block number `index` of a row's slab, for one kv head.
    bf16 *block(int layer, int row, int kv, int index) const {
        const int size = cache->blocks_per_page;
        const int64_t page = cache->tables[int64_t(p->slabs[row]) * cache->pages_per_slab + index / size];
        return cache->data + layer * cache->layer_stride + kv * cache->head_stride +
               (page * size + index % size) * 2 * BLOCK * m->head_dim;
    }

    // Returns the blocks of a tile of a row's slab. The last block that has positions before `end` stands for later
    // ones.
    Tile tile_of(int layer, int row, int kv, int tile, int end) const {
        Tile found;
        const int last = std::max(end - 1, tile) / BLOCK;
        for (int b = 0; b < TILE / BLOCK; b++)
            found.block[b] = tile / BLOCK + b <= last ? block(layer, row, kv, tile / BLOCK + b) : found.block[b - 1];
        return found;
    }

    // Applies head norms and RoPE to row i of the active rows, for one kv head and the query heads that attend to it.
    // Queries go to `heads` as bf16, keys and values to the cache.
    ONE_COPY void rotate_and_store(int index, const Layer &layer, int i, int kv) {
        const int width = m->head_dim, row = active[i], position = p->positions[row], group = m->heads / m->kv_heads;
        float *from = qkv + int64_t(i) * (m->heads + 2 * m->kv_heads) * width;
        const float *rope = p->rope + int64_t(position) * width;
        const auto normalised = [&](int h) {
            float *head = from + h * width;
            if (layer.qk_norm) {
                vf squares{};
                for (int d = 0; d < width; d += LANES) {
                    vf v = load<vf>(head + d);
                    squares += v * v;
                }
                const float scale = 1.f / std::sqrt(sum_lanes(squares) / width + m->epsilon);
                for (int d = 0; d < width; d += LANES)
                    store(head + d, load<vf>(head + d) * scale * load<vf>(layer.qk_norm + h * width + d));
            }
            return head;
        };
        for (int h = kv * group; h < (kv + 1) * group; h++) {
            const float *head = normalised(h);
            bf16 *q = heads + (int64_t(i) * m->heads + h) * width;
            for (int d = 0; d < width; d += LANES)
                store(q + d, to_bf16(rotate(load<vf>(head + d), load<vf>(rope + d))));
        }
        float *k = normalised(m->heads + kv);
        for (int d = 0; d < width; d += LANES) store(k + d, rotate(load<vf>(k + d), load<vf>(rope + d)));
        if (p->read_only) return;
        const float *v = k + m->kv_heads * width;
        bf16 *to = block(index, row, kv, position / BLOCK);
        const int lane = position % BLOCK;
        bf16 *to_k = to + 2 * lane, *to_v = to + BLOCK * width + lane / 2 * 2 * width + lane % 2;
        for (int d = 0; d < width; d += LANES) {
            bf16 kept[LANES];
            store(kept, to_bf16(load<vf>(k + d)));
            for (int j = 0; j < LANES; j += 2) std::memcpy(to_k + (d + j) * BLOCK, kept + j, 2 * sizeof(bf16));
            store(kept, to_bf16(load<vf>(v + d)));
            for (int j = 0; j < LANES; j++) to_v[2 * (d + j)] = kept[j];
        }
    }

    // Rotates pairs (a, b) by angles given as pairs (c, s) of cosine and sine: a·c - b·s, b·c + a·s.
    static vf rotate(vf pairs, vf factors) {
        const vi evens = lane_numbers() & ~1, odds = lane_numbers() | 1, neighbours = lane_numbers() ^ 1;
        const vf cosines = shuffle(factors, evens), sines = shuffle(factors, odds), others = shuffle(pairs, neighbours);
        const vf sign = __builtin_convertvector((lane_numbers() & 1) * 2 - 1, vf);
        return pairs * cosines + others * (sines * sign);
    }

    // Returns scratch memory of this thread for n states.
    float *scratch_states(int n) const {
        thread_local std::vector<float> room;
        if (room.size() < size_t(n) * state_size()) room.resize(size_t(n) * state_size());
        return room.data();
    }

    // Computes softmax attention over the context. Parts of a context are merged in their order, whoever computes them.
    void attend(int index, const Layer &layer) {
        const int n = int(units.size()) * m->kv_heads;
        pool.parallel_for(
            n, std::max(1, n / (4 * pool.size)),
            [&](int from, int to) {
                for (int u = from; u < to; u++) {
                    Tile next;
                    if (u + 1 < n) next = first_tile(index, u + 1);
                    const Tile *then = u + 1 < n ? &next : nullptr;
                    if (part_count) attend_part(index, units[u / m->kv_heads], u % m->kv_heads, then);
                    else attend_whole(index, layer, units[u / m->kv_heads], u % m->kv_heads, then);
                }
            },
            false);
        if (!part_count) return;
        pool.parallel_for(active_count * m->heads, m->heads, [&](int from, int to) {
            for (int u = from; u < to; u++) merge_parts(u / m->heads, u % m->heads);
        });
    }

    // Returns roughly the first blocks that a unit reads for a kv head, to prefetch them.
    Tile first_tile(int index, int u) const {
        const AttentionUnit &unit = units[u / m->kv_heads];
        const int row = active[unit.first];
        const int low = unit.part == SINKS_PART
                            ? 0
                            : std::max(first_visible(p->positions[row]), std::max(unit.part, 0) * PART_POSITIONS);
        return tile_of(index, row, u % m->kv_heads, low / TILE * TILE, p->positions[row] + 1);
    }

    // Computes one part of a unit's context.
    void attend_part(int index, const AttentionUnit &unit, int kv, const Tile *next) {
        const int group = m->heads / m->kv_heads, size = state_size();
        float *states = scratch_states(unit.count * group);
        scan_context(index, unit, kv, states, next);
        const int place = unit.part == SINKS_PART ? part_count - 1 : unit.part;
        for (int r = 0; r < unit.count; r++)
            for (int g = 0; g < group; g++)
                std::memcpy(partial_state(unit.first + r, kv * group + g, place), states + (r * group + g) * size,
                            size * sizeof(float));
    }

    // Computes all parts of a unit's context. Independent units write their keys and values here first, so that the
    // thread that reads them has them in its cache.
    void attend_whole(int index, const Layer &layer, const AttentionUnit &unit, int kv, const Tile *next) {
        if (units_independent)
            for (int r = 0; r < unit.count; r++) rotate_and_store(index, layer, unit.first + r, kv);
        const int group = m->heads / m->kv_heads, size = state_size(), n = unit.count * group;
        float *states = scratch_states(2 * n), *merged = states + n * size;
        const auto [first, last] = part_range(unit);
        scan_context(index, {unit.first, unit.count, first}, kv, merged, first == last ? next : nullptr);
        const auto more = [&](int part, const Tile *then) {
            scan_context(index, {unit.first, unit.count, part}, kv, states, then);
            for (int s = 0; s < n; s++) merge_state(merged + s * size, states + s * size);
        };
        for (int part = first + 1; part <= last; part++) more(part, part == last ? next : nullptr);
        if (sinks) more(SINKS_PART, nullptr);
        for (int r = 0; r < unit.count; r++)
            for (int g = 0; g < group; g++) write_head(unit.first + r, kv * group + g, merged + (r * group + g) * size);
    }

    // Merges the parts of one row and head.
    void merge_parts(int i, int head) {
        const int position = p->positions[active[i]];
        float *merged = scratch_states(1);
        reset_state(merged);
        for (int part = first_visible(position) / PART_POSITIONS; part <= position / PART_POSITIONS; part++)
            merge_state(merged, partial_state(i, head, part));
        if (sinks) merge_state(merged, partial_state(i, head, part_count - 1));
        write_head(i, head, merged);
    }

    float *partial_state(int i, int head, int part) {
        return partial + ((size_t(i) * m->heads + head) * part_count + part) * state_size();
    }

    void reset_state(float *state) const {
        std::memset(state, 0, m->head_dim * sizeof(float));
        state[m->head_dim] = MINUS_INFINITY;
        state[m->head_dim + 1] = 0;
    }

    // Merges one state into another. One copy of the code: the compiler must round alike wherever parts are merged.
    ONE_COPY void merge_state(float *into, const float *part) const {
        const int width = m->head_dim;
        const float high = std::max(into[width], part[width]);
        if (high == MINUS_INFINITY) return;
        const float a = into[width] == MINUS_INFINITY ? 0.f : exponential(into[width] - high);
        const float b = part[width] == MINUS_INFINITY ? 0.f : exponential(part[width] - high);
        for (int d = 0; d < width; d += LANES) store(into + d, load<vf>(into + d) * a + load<vf>(part + d) * b);
        into[width + 1] = into[width + 1] * a + part[width + 1] * b;
        into[width] = high;
    }

    void write_head(int i, int head, float *state) {
        const int width = m->head_dim;
        bf16 *to = heads + (int64_t(i) * m->heads + head) * width;
        if (p->read_only) {  // the row's own position is not in the cache
            const int kv = head / (m->heads / m->kv_heads);
            const float *k = qkv + int64_t(i) * (m->heads + 2 * m->kv_heads) * width + (m->heads + kv) * width;
            const float *v = k + m->kv_heads * width;
            float score = 0;
            for (int d = 0; d < width; d++) score += to_float(to[d]) * to_float(to_bf16(k[d]));
            score *= scale();
            const float high = std::max(state[width], score);
            const float a = state[width] == MINUS_INFINITY ? 0.f : exponential(state[width] - high),
                        b = exponential(score - high);
            for (int d = 0; d < width; d++) state[d] = state[d] * a + b * to_float(to_bf16(v[d]));
            state[width + 1] = state[width + 1] * a + b;
        }
        const float share = 1.f / state[width + 1];
        for (int d = 0; d < width; d += LANES) store(to + d, to_bf16(load<vf>(state + d) * share));
    }

    // Computes the states of a unit's rows for one kv head over one part of the context. `next`: what this thread reads
    // afterwards.
    void scan_context(int index, AttentionUnit unit, int kv, float *states, const Tile *next) {
        const int group = m->heads / m->kv_heads, width = m->head_dim, size = state_size();
        const bool start = unit.part == SINKS_PART;
        const int from = start ? 0 : unit.part * PART_POSITIONS, to = start ? sinks : from + PART_POSITIONS;
        int low = to, high = 0;
        for (int r = 0; r < unit.count; r++) {
            const auto [first, end] = visible(p->positions[active[unit.first + r]], start);
            low = std::min(low, std::max(first, from));
            high = std::max(high, std::min(end, to));
            for (int g = 0; g < group; g++) reset_state(states + (size_t(r) * group + g) * size);
        }
        if (low >= high) return;
        thread_local std::vector<Query> queries;
        queries.clear();
        for (int r = 0; r < unit.count; r++) {
            const auto [first, end] = visible(p->positions[active[unit.first + r]], start);
            const bf16 *q = heads + (int64_t(unit.first + r) * m->heads + kv * group) * width;
            for (int g = 0; g < group; g++)
                queries.push_back({q + g * width, states + (size_t(r) * group + g) * size, first, end});
        }
        if (HAS_AMX) gather_queries(queries);
        const int row = active[unit.first];
        Tile blocks, following = tile_of(index, row, kv, low / TILE * TILE, high);
        for (int tile = low / TILE * TILE; tile < high; tile += TILE) {
            blocks = following;
            const Tile *next_tile = next;
            if (tile + TILE < high) {
                following = tile_of(index, row, kv, tile + TILE, high);
                next_tile = &following;  // only the first queries prefetch: the hardware notices the pattern too late
            }
            const int n = int(queries.size());
            for (int i = 0; i < n;) {
                const int used = queries[i].blocks_of(tile);
                int alike = 1;
                while (i + alike < n && queries[i + alike].blocks_of(tile) == used) alike++;
                for (int parts = used ? (alike + max_queries() - 1) / max_queries() : 0, done = 0; parts; parts--) {
                    const int some = (alike - done) / parts;
                    if (HAS_AMX) attend_tile_amx(some, &queries[i + done], blocks, next_tile, used, tile);
                    else attend_tile(some, &queries[i + done], blocks, next_tile, used, tile);
                    done += some;
                    next_tile = nullptr;
                }
                i += alike;
            }
        }
    }

    ThreadPool &pool;
    const Cache *cache = nullptr;
    const Pass *p = nullptr;
    std::vector<int> active;  // rows that run the current sublayer, the first active_count of them
    int active_count = 0;
    int window = 0, sinks = 0;       // last positions that rows see (0: all), and first positions besides
    float *qkv = nullptr;            // [active_count][(heads + 2 · kv_heads) · head_dim]
    bf16 *heads = nullptr;           // [active_count][heads · head_dim]: queries, then results
    bool units_independent = false;  // no unit reads keys or values that another one writes

private:
    std::vector<AttentionUnit> units;
    int part_count = 0;        // states that each row and head leaves; 0 if units scan all parts
    float *partial = nullptr;  // [active_count][heads][part_count] states
    Buffer<float> partial_;
};

}  // namespace
