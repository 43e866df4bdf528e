// A pass of rows through sublayers. executor.h runs passes for KernelLibrary.run, draft, verify and fill.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "buffer.h"
#include "context_attention.h"
#include "products.h"
#include "structures.h"
#include "thread_pool.h"
#include "vectors.h"

namespace {

constexpr int MIN_PARALLEL_ELEMENTS = 4096;  // loops that touch fewer run on one thread

// Writes RMSNorm of x [n] by weight [n] to out [n].
void rms_norm(const float *x, const float *weight, int n, float epsilon, bf16 *out) {
    vf squares{};
    int i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf v = load<vf>(x + i);
        squares += v * v;
    }
    float sum = sum_lanes(squares);
    for (int j = i; j < n; j++) sum += x[j] * x[j];
    const float scale = 1.f / std::sqrt(sum / n + epsilon);
    for (i = 0; i + LANES <= n; i += LANES) store(out + i, to_bf16(load<vf>(x + i) * scale * load<vf>(weight + i)));
    for (; i < n; i++) out[i] = to_bf16(x[i] * scale * weight[i]);
}

// The current pass, its buffers and its loops over rows, heads and panels.
class LayerPass : ContextAttention {
public:
    explicit LayerPass(ThreadPool &pool) : ContextAttention(pool) {}

    // Runs a pass. `next_linear`: the layer that the caller multiplies with next, prefetched at the end; may be null.
    void run(const Model &m, const Cache &cache, const Pass &p, const Linear *next_linear) {
        this->m = &m;
        this->cache = &cache;
        this->p = &p;
        linear_after_pass = next_linear;
        const size_t rows = p.rows;
        active.resize(rows);
        normed = normed_.get(rows * m.hidden);
        qkv = qkv_.get(rows * (m.heads + 2 * m.kv_heads) * m.head_dim);
        heads = heads_.get(rows * m.heads * m.head_dim);
        inner = inner_.get(rows * m.intermediate);
        pool.wake();
        sublayers();
    }

    void linear(const Linear &l, const float *x, int rows, float *out, const float *norm, float epsilon) {
        normed = normed_.get(size_t(rows) * l.in);
        pool.wake();
        for_each_row(rows, l.in, [&](int r) {
            const float *from = x + int64_t(r) * l.in;
            bf16 *to = normed + int64_t(r) * l.in;
            if (norm) rms_norm(from, norm, l.in, epsilon, to);
            else
                for (int i = 0; i < l.in; i++) to[i] = to_bf16(from[i]);
        });
        multiply_linear(pool, l, normed, rows, nullptr, [&](int r, int column, const float *sums, int columns) {
            const int n = std::min(columns, l.out - column);
            float *to = out + int64_t(r) * l.out + column;
            for (int i = 0; i < n; i++) to[i] = sums[i] + (l.bias ? l.bias[column + i] : 0.f);
        });
    }

    // Calls work(r) for every row, `least` neighbours on one thread; on one thread altogether if there is little to do.
    template <class Work>
    void for_each_row(int rows, int width, Work &&work, int least = 1) {
        const int share = int64_t(rows) * width <= MIN_PARALLEL_ELEMENTS ? std::max(1, rows)
                                                                         : std::max(least, rows / (8 * pool.size));
        pool.parallel_for(rows, share, [&](int first, int last) {
            for (int r = first; r < last; r++) work(r);
        });
    }

private:
    // Returns the first linear layer that the first row runs after sublayer `index`, to prefetch its weights.
    const Linear *next_linear_after(int index) const {
        while (++index < p->last) {
            const int variant = p->plans[index];
            if (variant == SKIP) continue;
            const Layer &layer = m->layer[index / 2];
            return (index % 2 ? layer.gate_up : layer.qkv) + weight_copy(variant);
        }
        return linear_after_pass;
    }

    void sublayers() {
        for (int index = p->first; index < p->last; index++) {
            if (p->records) record(index);
            for (int variant = TARGET; variant < VARIANTS; variant++) {
                select_rows(index, variant);
                if (!active_count) continue;
                next_linear = next_linear_after(index);
                if (index % 2) mlp(m->layer[index / 2], weight_copy(variant));
                else attention(index / 2, weight_copy(variant));
            }
        }
        if (p->records) record(p->last);
    }

    void record(int index) {
        float *to = p->records + int64_t(index - p->first) * p->rows * m->hidden;
        std::memcpy(to, p->x, size_t(p->rows) * m->hidden * sizeof(float));
    }

    // Finds the rows that run this variant of the sublayer.
    void select_rows(int index, int variant) {
        active_count = 0;
        for (int r = 0; r < p->rows; r++)
            if (p->plans[int64_t(r) * p->plan_stride + index] == variant) active[active_count++] = r;
        if (!active_count || index % 2) return;
        window = m->layer[index / 2].window;
        sinks = 0;
        if (variant == WINDOW && (!window || window > m->recent)) {
            window = m->recent;
            sinks = m->sinks;
        }
        plan_units();
    }

    void norm_rows(const float *weight) {
        for_each_row(active_count, m->hidden, [&](int i) {
            rms_norm(p->x + int64_t(active[i]) * m->hidden, weight, m->hidden, m->epsilon,
                     normed + int64_t(i) * m->hidden);
        });
    }

    void add_linear(const Linear &l, const bf16 *x, const Linear *next_linear) {
        multiply_linear(pool, l, x, active_count, next_linear, [&](int i, int column, const float *sums, int columns) {
            const int n = std::min(columns, l.out - column);
            float *to = p->x + int64_t(active[i]) * m->hidden + column;
            if (l.bias)
                for (int j = 0; j < n; j++) to[j] += sums[j] + l.bias[column + j];
            else
                for (int j = 0; j < n; j++) to[j] += sums[j];
        });
    }

    void mlp(const Layer &layer, int copy) {
        norm_rows(layer.mlp_norm);
        // Each panel holds 16 outputs of the gate, then the corresponding 16 of the up projection.
        const Linear &l = layer.gate_up[copy];
        multiply_linear(pool, l, normed, active_count, layer.down + copy,
                        [&](int i, int column, const float *sums, int columns) {
                            for (int j = 0; j < columns; j += PANEL)
                                for (int k = j; k < j + PANEL / 2; k += LANES) {
                                    vf gate = load<vf>(sums + k), up = load<vf>(sums + k + PANEL / 2);
                                    if (l.bias) {
                                        gate += load<vf>(l.bias + column + k);
                                        up += load<vf>(l.bias + column + k + PANEL / 2);
                                    }
                                    const vf kept = gate < -87.f ? splat(-87.f) : gate;
                                    bf16 *to = inner + int64_t(i) * m->intermediate + (column + j) / 2 + k - j;
                                    store(to, to_bf16(gate / (1.f + exponential(-kept)) * up));
                                }
                        });
        add_linear(layer.down[copy], inner, next_linear);
    }

    void attention(int index, int copy) {
        const Layer &layer = m->layer[index];
        norm_rows(layer.attention_norm);
        const Linear &l = layer.qkv[copy];
        multiply_linear(pool, l, normed, active_count, layer.output + copy,
                        [&](int i, int column, const float *sums, int columns) {
                            const int n = std::min(columns, l.out - column);
                            float *to = qkv + int64_t(i) * l.out + column;
                            for (int j = 0; j < n; j++) to[j] = sums[j] + (l.bias ? l.bias[column + j] : 0.f);
                        });
        // Neighbouring rows of a request write to the same cache lines, which threads would take from each other.
        if (!units_independent)
            for_each_row(
                active_count, l.out,
                [&](int i) {
                    for (int kv = 0; kv < m->kv_heads; kv++) rotate_and_store(index, layer, i, kv);
                },
                BLOCK);
        attend(index, layer);
        add_linear(layer.output[copy], heads, next_linear);
    }

    const Linear *next_linear = nullptr;        // to multiply with after the current sublayer
    const Linear *linear_after_pass = nullptr;  // to multiply with after the pass
    bf16 *normed = nullptr;                     // [rows][inputs], RMSNorm of the residual stream
    bf16 *inner = nullptr;                      // [rows][intermediate], gated
    Buffer<bf16> normed_, heads_, inner_;
    Buffer<float> qkv_;
};

}  // namespace
