// One call at a time over one pool of threads: passes, drafts, verification, search, packing. kernels.cpp exports every
// public method of Executor to Python.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "buffer.h"
#include "layer_pass.h"
#include "low_bit.h"
#include "packed_layout.h"
#include "sampling.h"
#include "structures.h"
#include "thread_pool.h"
#include "vectors.h"

namespace {

class Executor {
public:
    explicit Executor(int threads) : pool(threads) {}

    void run(const Model &m, const Cache &cache, const Pass &p) {
        const CallLock lock(busy);
        layers.run(m, cache, p, nullptr);
    }

    // Packs rows [32 · panels] of packed weights; null rows pad the last panel.
    void pack(const PackedFormat &format, const uint8_t *const *rows, int64_t inputs, int panels, uint8_t *to) {
        const CallLock lock(busy);
        const int64_t size = panel_bytes(format, inputs);
        pool.wake();
        pool.parallel_for(panels, 1, [&](int first, int last) {
            for (int p = first; p < last; p++) pack_panel(format, rows + p * PANEL, inputs, to + p * size);
        });
    }

    // Quantises the panels of a layer, or of one packed part of it.
    void quantise(const Linear &l, const PackedPart *part, int bits, int panels, uint8_t *to) {
        const CallLock lock(busy);
        const int64_t size = panel_bytes({CODES, bits, GROUP, 0, 0, HALVES, 0, 0}, l.in);
        pool.wake();
        pool.parallel_for(panels, 1, [&](int first, int last) {
            for (int p = first; p < last; p++) quantise_panel(PanelReader(l, part, p), l.in, bits, to + p * size);
        });
    }

    void product(const Linear &l, const float *x, int rows, float *out, const float *norm, float epsilon) {
        const CallLock lock(busy);
        layers.linear(l, x, rows, out, norm, epsilon);
    }

    int draft(const Model &m, const Cache &cache, const EmbedAndHead &embed_head, const DraftBatch &d) {
        const CallLock lock(busy);
        return run_draft(m, cache, embed_head, d);
    }

    void verify(const Model &m, const Cache &cache, const EmbedAndHead &embed_head, const VerifyBatch &v) {
        const CallLock lock(busy);
        run_verify(m, cache, embed_head, v);
    }

private:
    // Runs draft passes in lock-step; requests leave as their stop rule says. Returns the number of passes.
    // twin: engine/model/passes.py, draft
    int run_draft(const Model &m, const Cache &cache, const EmbedAndHead &embed_head, const DraftBatch &d) {
        const size_t width = 2 * m.layers + 1;
        std::vector<int> live(d.requests);
        std::vector<int32_t> slabs(d.requests), positions(d.requests);
        std::vector<uint8_t> plans(d.requests * width);
        for (int r = 0; r < d.requests; r++) {
            live[r] = r;
            d.lengths[r] = 0;
        }
        float *x = x_.get(size_t(d.requests) * m.hidden);
        const int vocabulary = embed_head.head->out;
        float *logits = logits_.get(size_t(d.requests) * vocabulary);
        for (int passes = 1;; passes++) {
            const int rows = int(live.size());
            for (int i = 0; i < rows; i++) {
                const int r = live[i], n = d.lengths[r];
                slabs[i] = d.slabs[r];
                positions[i] = d.starts[r] + n;
                std::memcpy(&plans[i * width], d.plans + r * width, width);
                embed(embed_head, m.hidden, d.tokens[r * (d.longest + 1) + n], x + size_t(i) * m.hidden);
            }
            layers.run(m, cache,
                       {embed_head.rope, x, slabs.data(), positions.data(), plans.data(), nullptr, int32_t(width), rows,
                        0, 2 * m.layers, 0},
                       embed_head.head + plans[width - 1] - TARGET);
            for (int i = 0, j; i < rows; i = j) {  // rows that share a head are multiplied together
                const uint8_t head = plans[(i + 1) * width - 1];
                for (j = i + 1; j < rows && plans[(j + 1) * width - 1] == head; j++) {}
                layers.linear(embed_head.head[head - TARGET], x + size_t(i) * m.hidden, j - i,
                              logits + size_t(i) * vocabulary, embed_head.norm, m.epsilon);
            }
            int kept = 0;
            for (int i = 0; i < rows; i++) {
                const int r = live[i];
                float *row = logits + size_t(i) * vocabulary;
                if (d.edited[r] == EDIT_BEFORE_DRAW) edit(d.edit, r, d.lengths[r], row);
                float confidence = draw_token(d, r, row, vocabulary);
                if (d.edited[r] == EDIT_AFTER_DRAW && confidence < d.mask_below && edit(d.edit, r, d.lengths[r], row)) {
                    d.lengths[r]--;
                    confidence = draw_token(d, r, row, vocabulary);
                }
                const int n = d.lengths[r];
                if (n == d.max_tokens[r] || d.confidences[r * d.longest + n - 1] < d.min_confidence[r]) continue;
                live[kept++] = r;
            }
            live.resize(kept);
            if (!kept) return passes;
        }
    }

    // Runs a pass over rows of tokens and draws a token after each of `draw_rows`.
    void run_verify(const Model &m, const Cache &cache, const EmbedAndHead &embed_head, const VerifyBatch &v) {
        const Linear &head = embed_head.head[v.plan[2 * m.layers] - TARGET];
        float *x = x_.get(size_t(v.rows) * m.hidden);
        for (int i = 0; i < v.rows; i++) embed(embed_head, m.hidden, v.tokens[i], x + size_t(i) * m.hidden);
        layers.run(m, cache,
                   {embed_head.rope, x, v.slabs, v.positions, v.plan, v.records, 0, v.rows, 0, 2 * m.layers, 0}, &head);
        if (!v.draws) return;
        for (int i = 0; i < v.draws; i++)
            if (v.draw_rows[i] != i)
                std::memcpy(x + size_t(i) * m.hidden, x + size_t(v.draw_rows[i]) * m.hidden, m.hidden * sizeof(float));
        float *logits = logits_.get(size_t(v.draws) * head.out);
        layers.linear(head, x, v.draws, logits, embed_head.norm, m.epsilon);
        for (int i = 0; i < v.draws; i++)
            if (v.edited[i]) edit(v.edit, i, 0, logits + size_t(i) * head.out);
        layers.for_each_row(v.draws, head.out, [&](int i) {
            v.drawn[i] = int32_t(sample(logits + size_t(i) * head.out, head.out, v.sampling[i],
                                        v.positions[v.draw_rows[i]] + 1, nullptr));
        });
        *v.scores = logits;
    }

    static bool edit(EditCallback change, int i, int drafted, float *row) {
        release_amx();
        return change(i, drafted, row);
    }

    static void embed(const EmbedAndHead &embed_head, int64_t hidden, int64_t token, float *to) {
        if (embed_head.row_bytes)
            read_row(embed_head.format,
                     static_cast<const uint8_t *>(embed_head.embedding) + token * embed_head.row_bytes, hidden, to);
        else if (embed_head.float32)
            std::memcpy(to, static_cast<const float *>(embed_head.embedding) + token * hidden, hidden * sizeof(float));
        else
            for (int64_t i = 0; i < hidden; i++)
                to[i] = to_float(static_cast<const bf16 *>(embed_head.embedding)[token * hidden + i]);
    }

    // Draws the next token of request r. Returns its confidence.
    static float draw_token(const DraftBatch &d, int r, float *logits, int32_t vocabulary) {
        const int n = d.lengths[r]++;
        float &confidence = d.confidences[r * d.longest + n];
        d.tokens[r * (d.longest + 1) + n + 1] =
            std::max(0, int32_t(sample(logits, vocabulary, d.sampling[r], d.starts[r] + n + 1, &confidence)));
        return confidence;
    }

    ThreadPool pool;
    LayerPass layers{pool};
    // Makes calls wait for each other, and releases the calling thread's AMX tiles after each.
    struct CallLock {
        explicit CallLock(std::mutex &busy) : one(busy) {}
        ~CallLock() { release_amx(); }
        std::lock_guard<std::mutex> one;
    };
    std::mutex busy;
    Buffer<float> x_, logits_;
};

}  // namespace
