// A pass through the layers.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "attention.h"
#include "packed.h"
#include "products.h"
#include "structures.h"
#include "team.h"
#include "vectors.h"

namespace {

constexpr int PART = 1024;       // positions that are summed up on their own; what threads may share out
constexpr int UNIT_ROWS = 16;    // rows of a request that read a tile together
constexpr int SPLIT_ROWS = 32;   // most rows of a pass whose contexts are shared out in parts
constexpr int BEGINNING = -2;    // the first positions, as a unit's part
constexpr int LIGHT = 4096;      // numbers to touch that are not worth sharing out

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

struct Unit { int first, count, part; };

// The rows of a pass through the layers.
class Lane : TileReader {
public:
    explicit Lane(Team &team) : team(team) {}

    // `later` is read behind the layers.
    void run(const Model &m, const Cache &cache, const Pass &p, const Linear *later) {
        this->m = &m; this->cache = &cache; this->p = &p; behind = later;
        const size_t rows = p.rows;
        active.resize(rows);
        normed = normed_.get(rows * m.hidden);
        qkv = qkv_.get(rows * (m.heads + 2 * m.kv_heads) * m.head_dim);
        heads = heads_.get(rows * m.heads * m.head_dim);
        inner = inner_.get(rows * m.intermediate);
        team.begin();
        sublayers();
    }

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
            const int variant = p->plans[index];
            if (variant == SKIP) continue;
            const Layer &layer = m->layer[index / 2];
            return (index % 2 ? layer.gate_up : layer.qkv) + weights_of(variant);
        }
        return behind;
    }

    void sublayers() {
        for (int index = p->first; index < p->last; index++) {
            if (p->records) record(index);
            for (int variant = TARGET; variant < VARIANTS; variant++) {
                choose(index, variant);
                if (!count) continue;
                later = after(index);
                if (index % 2) mlp(m->layer[index / 2], weights_of(variant)); else attention(index / 2, weights_of(variant));
            }
        }
        if (p->records) record(p->last);
    }

    void record(int index) {
        float *to = p->records + int64_t(index - p->first) * p->rows * m->hidden;
        std::memcpy(to, p->x, size_t(p->rows) * m->hidden * sizeof(float));
    }

    // Which rows run this variant of the sublayer.
    void choose(int index, int variant) {
        count = 0;
        for (int r = 0; r < p->rows; r++) if (p->plans[int64_t(r) * p->plan_stride + index] == variant) active[count++] = r;
        if (!count || index % 2) return;
        window = m->layer[index / 2].window;
        sinks = 0;
        if (variant == WINDOW && (!window || window > m->recent)) { window = m->recent; sinks = m->sinks; }
        share_out();
    }

    // Units of attention: rows of one slab, and which part of the context they scan (-1: all parts, one by one). Parts
    // are shared out where there are too few rows and heads to keep the team busy.
    void share_out() {
        units.clear();
        int parts = 1;
        for (int i = 0; i < count;) {
            int n = 1;
            while (i + n < count && n < UNIT_ROWS && p->slabs[active[i + n]] == p->slabs[active[i]]) n++;
            units.push_back({i, n, -1});
            for (int r = 0; r < n; r++) parts = std::max(parts, p->positions[active[i + r]] / PART + 1);
            i += n;
        }
        split = parts > 1 && count <= SPLIT_ROWS && int(units.size()) * m->kv_heads < 4 * team.size ? parts + 1 : 0;
        apart = !split;
        for (size_t u = 1; u < units.size(); u++) apart &= slab_of(units[u]) != slab_of(units[u - 1]);
        if (!split) return;
        std::vector<Unit> whole;
        whole.swap(units);
        for (const Unit &unit : whole) {
            const auto [first, last] = parts_of(unit);
            for (int part = first; part <= last; part++) units.push_back({unit.first, unit.count, part});
            if (sinks) units.push_back({unit.first, unit.count, BEGINNING});
        }
        partial = partial_.get(size_t(count) * m->heads * split * state_size());
    }

    int slab_of(const Unit &unit) const { return p->slabs[active[unit.first]]; }

    // First and last part of the context that any row of the unit sees.
    std::pair<int, int> parts_of(const Unit &unit) const {
        int first = 1 << 30, last = 0;
        for (int r = 0; r < unit.count; r++) {
            const int position = p->positions[active[unit.first + r]];
            first = std::min(first, begin(position) / PART);
            last = std::max(last, position / PART);
        }
        return {first, last};
    }

    int begin(int position) const { return window ? std::max(0, position + 1 - window) : 0; }

    // What a row sees of the context, or of its beginning: from … to - 1.
    std::pair<int, int> seen(int position, bool beginning) const {
        return beginning ? std::pair(0, std::min(sinks, begin(position))) : std::pair(begin(position), position + !p->own);
    }

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

    void mlp(const Layer &layer, int copy) {
        norm_rows(layer.mlp_norm);
        const Linear &l = layer.gate_up[copy];  // each panel: 16 outputs of the gate, the same 16 of the other half
        products(team, l, normed, count, layer.down + copy, [&](int i, int column, const float *sums, int columns) {
            for (int j = 0; j < columns; j += PANEL)
                for (int k = j; k < j + PANEL / 2; k += LANES) {
                    vf gate = load<vf>(sums + k), up = load<vf>(sums + k + PANEL / 2);
                    if (l.bias) { gate += load<vf>(l.bias + column + k); up += load<vf>(l.bias + column + k + PANEL / 2); }
                    const vf kept = gate < -87.f ? splat(-87.f) : gate;
                    bf16 *to = inner + int64_t(i) * m->intermediate + (column + j) / 2 + k - j;
                    store(to, narrow(gate / (1.f + exponential(-kept)) * up));
                }
        });
        add_products(layer.down[copy], inner, later);
    }

    void attention(int index, int copy) {
        const Layer &layer = m->layer[index];
        norm_rows(layer.attention_norm);
        const Linear &l = layer.qkv[copy];
        products(team, l, normed, count, layer.output + copy, [&](int i, int column, const float *sums, int columns) {
            const int n = std::min(columns, l.out - column);
            float *to = qkv + int64_t(i) * l.out + column;
            for (int j = 0; j < n; j++) to[j] = sums[j] + (l.bias ? l.bias[column + j] : 0.f);
        });
        // Rows of a request write to the same lines of the cache, which threads would take from each other.
        if (!apart) each_row(count, l.out, [&](int i) {
            for (int kv = 0; kv < m->kv_heads; kv++) turn_and_keep(index, layer, i, kv);
        }, BLOCK);
        attend(index, layer);
        add_products(layer.output[copy], heads, later);
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
        const int n = int(units.size()) * m->kv_heads;
        team.each(n, std::max(1, n / (4 * team.size)), [&](int from, int to) {
            for (int u = from; u < to; u++) {
                const bf16 *next = u + 1 < n ? beginning(index, u + 1) : nullptr;
                if (split) part(index, units[u / m->kv_heads], u % m->kv_heads, next);
                else whole(index, layer, units[u / m->kv_heads], u % m->kv_heads, next);
            }
        }, false);
        if (!split) return;
        team.each(count * m->heads, m->heads, [&](int from, int to) {
            for (int u = from; u < to; u++) join(u / m->heads, u % m->heads);
        });
    }

    // The first tile of a unit and kv head, more or less: what is asked for before it is its turn.
    const bf16 *beginning(int index, int u) const {
        const Unit &unit = units[u / m->kv_heads];
        const int row = active[unit.first];
        const int low = unit.part == BEGINNING ? 0 : std::max(begin(p->positions[row]), std::max(unit.part, 0) * PART);
        return slab(index, row) + u % m->kv_heads * cache->head + int64_t(low / TILE) * TILE * 2 * m->head_dim;
    }

    // One part of the context of a unit.
    void part(int index, const Unit &unit, int kv, const bf16 *next) {
        const int group = m->heads / m->kv_heads, size = state_size();
        float *states = scratch(unit.count * group);
        scan(index, unit, kv, states, next);
        const int place = unit.part == BEGINNING ? split - 1 : unit.part;
        for (int r = 0; r < unit.count; r++)
            for (int g = 0; g < group; g++)
                std::memcpy(part_of(unit.first + r, kv * group + g, place), states + (r * group + g) * size, size * sizeof(float));
    }

    // All parts of it; first what nobody else needs, which the thread that reads it has at hand then.
    void whole(int index, const Layer &layer, const Unit &unit, int kv, const bf16 *next) {
        if (apart) for (int r = 0; r < unit.count; r++) turn_and_keep(index, layer, unit.first + r, kv);
        const int group = m->heads / m->kv_heads, size = state_size(), n = unit.count * group;
        float *states = scratch(2 * n), *merged = states + n * size;
        const auto [first, last] = parts_of(unit);
        scan(index, {unit.first, unit.count, first}, kv, merged, first == last ? next : nullptr);
        const auto more = [&](int part, const bf16 *then) {
            scan(index, {unit.first, unit.count, part}, kv, states, then);
            for (int s = 0; s < n; s++) merge(merged + s * size, states + s * size);
        };
        for (int part = first + 1; part <= last; part++) more(part, part == last ? next : nullptr);
        if (sinks) more(BEGINNING, nullptr);
        for (int r = 0; r < unit.count; r++)
            for (int g = 0; g < group; g++) finish(unit.first + r, kv * group + g, merged + (r * group + g) * size);
    }

    // The parts of one row and head.
    void join(int i, int head) {
        const int position = p->positions[active[i]];
        float *merged = scratch(1);
        clear(merged);
        for (int part = begin(position) / PART; part <= position / PART; part++) merge(merged, part_of(i, head, part));
        if (sinks) merge(merged, part_of(i, head, split - 1));
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

    // The states of all rows of a unit for one kv head over one part of the context; `next` is what will be read then.
    void scan(int index, Unit unit, int kv, float *states, const bf16 *next) {
        const int group = m->heads / m->kv_heads, width = m->head_dim, size = state_size();
        const bool start = unit.part == BEGINNING;
        const int from = start ? 0 : unit.part * PART, to = start ? sinks : from + PART;
        int low = to, high = 0;
        for (int r = 0; r < unit.count; r++) {
            const auto [first, behind] = seen(p->positions[active[unit.first + r]], start);
            low = std::min(low, std::max(first, from));
            high = std::max(high, std::min(behind, to));
            for (int g = 0; g < group; g++) clear(states + (size_t(r) * group + g) * size);
        }
        thread_local std::vector<Query> queries;
        queries.clear();
        for (int r = 0; r < unit.count; r++) {
            const auto [first, behind] = seen(p->positions[active[unit.first + r]], start);
            const bf16 *q = heads + (int64_t(unit.first + r) * m->heads + kv * group) * width;
            for (int g = 0; g < group; g++) queries.push_back({q + g * width, states + (size_t(r) * group + g) * size, first, behind});
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

    Team &team;
    const Cache *cache = nullptr;
    const Pass *p = nullptr;
    std::vector<int> active;
    std::vector<Unit> units;
    int window = 0, sinks = 0;   // last positions that rows see (0: all), and the first ones that they see beside these
    int count = 0, split = 0;    // `split`: states that parts of a row and head leave, 0 where units scan all parts
    bool apart = false;  // no unit reads what another one writes
    const Linear *later = nullptr, *behind = nullptr;  // what comes after the sublayer, and after the last
    bf16 *normed = nullptr, *heads = nullptr, *inner = nullptr;
    float *qkv = nullptr, *partial = nullptr;
    Buffer<bf16> normed_, heads_, inner_;
    Buffer<float> qkv_, partial_;
};

}  // namespace
