// Passes, drafts, verification and searches over one team of threads.

#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "drawing.h"
#include "lane.h"
#include "low_bit.h"
#include "structures.h"
#include "team.h"
#include "vectors.h"

namespace {

class Runner {
public:
    explicit Runner(int threads) : team(threads) {}

    void pass(const Model &m, const Cache &cache, const Pass &p) {
        const Turn turn(busy);
        all.run(m, cache, p, nullptr);
    }

    // Rows [32·panels] of packed weights, null where there are no more, to panels.
    void pack(const Written &how, const uint8_t *const *rows, int64_t inputs, int panels, uint8_t *to) {
        const Turn turn(busy);
        const int64_t size = panel_bytes(how, inputs);
        team.begin();
        team.each(panels, 1, [&](int first, int last) {
            for (int p = first; p < last; p++) lay_out_panel(how, rows + p * PANEL, inputs, to + p * size);
        });
    }

    // Panels of a layer, or of one part of it, to panels of codes of so many bits.
    void lower(const Linear &l, const Part *part, int bits, int panels, uint8_t *to) {
        const Turn turn(busy);
        const int64_t size = panel_bytes({CODES, bits, GROUP, 0, 0, HALVES, 0, 0}, l.in);
        team.begin();
        team.each(panels, 1, [&](int first, int last) {
            for (int p = first; p < last; p++) lower_panel(PanelReader(l, part, p), l.in, bits, to + p * size);
        });
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

    // Fills rows of the knapsack, one for each sublayer of the pass, until one is empty: every live state runs through each
    // variant of it, and by the mean cosines of these with the full model's the entries that go on are chosen.
    void fill(const Model &m, const Cache &cache, const Pass &p, const Table &t) {
        const Turn turn(busy);
        const int64_t state = int64_t(t.rows) * m.hidden;
        float *reached = t.states + t.beam * state;
        scores.resize(VARIANTS * t.beam);
        std::vector<uint8_t> plan(2 * m.layers);
        for (int index = p.first; index < p.last; index++) {
            const int row = index - p.first, live = t.live[row];
            if (!live) { std::fill(t.live + row, t.live + p.last - p.first + 1, 0); return; }
            const int64_t *saves = t.saves + index * VARIANTS;
            int menu[VARIANTS], choices = 0;
            for (int variant : MENU) if (saves[variant] >= 0) menu[choices++] = variant;
            for (int n = 0; n < choices; n++) {
                float *x = reached + n * live * state;
                std::memcpy(x, t.states, live * state * sizeof(float));
                if (menu[n] == SKIP) continue;
                plan[index] = uint8_t(menu[n]);
                all.run(m, cache, {p.rope, x, p.slabs, p.positions, plan.data(), nullptr, 0, live * t.rows, index, index + 1, 1}, nullptr);
            }
            const float *direction = t.directions + (index + 1) * state;
            team.each(choices * live, std::max(1, live / (2 * team.size)), [&](int first, int last) {
                for (int i = first; i < last; i++) {
                    float sum = 0;
                    for (int r = 0; r < t.rows; r++) sum += cosine(reached + i * state + r * m.hidden, direction + r * m.hidden, m.hidden);
                    scores[i] = sum / t.rows;
                }
            });
            enter(t, saves, menu, choices, row);
            for (int i = 0; i < int(entries.size()); i++) {
                const Entry &e = entries[i];
                const int64_t to = int64_t(row + 1) * t.beam + i;
                t.saved[to] = e.saved; t.source[to] = e.source; t.variant[to] = uint8_t(menu[e.number]); t.cosines[i] = e.score;
                std::memcpy(t.states + i * state, reached + (e.number * live + e.source) * state, state * sizeof(float));
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
        const size_t width = 2 * m.layers + 1;
        std::vector<int> live(d.requests);
        std::vector<int32_t> slabs(d.requests), positions(d.requests);
        std::vector<uint8_t> plans(d.requests * width);
        std::vector<double> reach(d.requests, 1.0);
        for (int r = 0; r < d.requests; r++) { live[r] = r; d.lengths[r] = 0; }
        float *x = x_.get(size_t(d.requests) * m.hidden);
        const int vocabulary = ends.head->out;
        float *logits = logits_.get(size_t(d.requests) * vocabulary);
        for (int passes = 1;; passes++) {
            const int rows = int(live.size());
            for (int i = 0; i < rows; i++) {
                const int r = live[i], n = d.lengths[r];
                slabs[i] = d.slabs[r];
                positions[i] = d.starts[r] + n;
                std::memcpy(&plans[i * width], d.plans + r * width, width);
                embed(ends, m.hidden, d.tokens[r * (d.longest + 1) + n], x + size_t(i) * m.hidden);
            }
            all.run(m, cache, {ends.rope, x, slabs.data(), positions.data(), plans.data(), nullptr, int32_t(width), rows, 0, 2 * m.layers, 0}, ends.head + plans[width - 1] - TARGET);
            for (int i = 0, j; i < rows; i = j) {  // neighbours that draft with the same head
                const uint8_t head = plans[(i + 1) * width - 1];
                for (j = i + 1; j < rows && plans[(j + 1) * width - 1] == head; j++) {}
                all.multiply(ends.head[head - TARGET], x + size_t(i) * m.hidden, j - i, logits + size_t(i) * vocabulary, ends.norm, m.epsilon);
            }
            double hope = 0;
            float worth = 0;
            int kept = 0;
            for (int i = 0; i < rows; i++) {
                const int r = live[i];
                float *row = logits + size_t(i) * vocabulary;
                if (d.edited[r] == BEFORE) edit(d.edit, r, d.lengths[r], row);
                float sure = add_token(d, r, row, vocabulary);
                if (d.edited[r] == AFTER && sure < d.sure && edit(d.edit, r, d.lengths[r], row)) {
                    d.lengths[r]--;
                    sure = add_token(d, r, row, vocabulary);
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
        const Linear &head = ends.head[v.plan[2 * m.layers] - TARGET];
        float *x = x_.get(size_t(v.rows) * m.hidden);
        for (int i = 0; i < v.rows; i++) embed(ends, m.hidden, v.tokens[i], x + size_t(i) * m.hidden);
        all.run(m, cache, {ends.rope, x, v.slabs, v.positions, v.plan, v.records, 0, v.rows, 0, 2 * m.layers, 0}, &head);
        if (!v.draws) return;
        for (int i = 0; i < v.draws; i++)
            if (v.picked[i] != i) std::memcpy(x + size_t(i) * m.hidden, x + size_t(v.picked[i]) * m.hidden, m.hidden * sizeof(float));
        float *logits = logits_.get(size_t(v.draws) * head.out);
        all.multiply(head, x, v.draws, logits, ends.norm, m.epsilon);
        for (int i = 0; i < v.draws; i++) if (v.edited[i]) edit(v.edit, i, 0, logits + size_t(i) * head.out);
        all.each_row(v.draws, head.out, [&](int i) {
            v.drawn[i] = int32_t(draw(logits + size_t(i) * head.out, head.out, v.sampling[i], v.positions[v.picked[i]] + 1, nullptr));
        });
        *v.scores = logits;
    }

    static constexpr int MENU[] = {TARGET, LOW_BIT, WINDOW, SKIP};  // in whose order ties go: the menus of Knapsack
    struct Entry { int64_t saved; float score; int32_t number, source; };  // `number`: of the variant in the menu

    // The entries of the row behind `row`, by their saved weight: Knapsack.advance and Knapsack._prune.
    void enter(const Table &t, const int64_t *saves, const int *menu, int choices, int row) {
        const int live = t.live[row];
        const int64_t *saved = t.saved + int64_t(row) * t.beam;
        entries.clear();
        for (int n = 0; n < choices; n++)
            for (int i = 0; i < live; i++) {
                const Entry e{saved[i] + saves[menu[n]], scores[n * live + i], n, i};
                const bool whole = n == 0 && !saved[i];  // the full model itself
                if (!(e.score >= t.tau || whole) || e.saved > t.capacity) continue;
                auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry &other) { return other.saved == e.saved; });
                if (same == entries.end()) entries.push_back(e);
                else if (e.score > same->score) *same = e;
            }
        std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.saved < b.saved; });
        const int n = int(entries.size());
        if (n <= t.beam) return;
        double x = 0, y = 0, along = 0, spread = 0;
        for (const Entry &e : entries) { x += e.saved; y += e.score; }
        for (const Entry &e : entries) { along += (e.saved - x / n) * (e.score - y / n); spread += (e.saved - x / n) * (e.saved - x / n); }
        const double trend = along / spread, width = double(entries[n - 1].saved - entries[0].saved + 1) / t.beam;
        const int64_t least = entries[0].saved;
        int last = -1, count = 0;
        for (const Entry e : entries) {  // each of equal ranges keeps what is furthest above the trend
            const int cell = int((e.saved - least) / width);
            if (cell != last) entries[count++] = e;
            else if (e.score - trend * e.saved > entries[count - 1].score - trend * entries[count - 1].saved) entries[count - 1] = e;
            last = cell;
        }
        entries.resize(count);
    }

    static bool edit(Edit changes, int i, int drafted, float *row) {
        leave_tiles();
        return changes(i, drafted, row);
    }

    static void embed(const Ends &ends, int64_t hidden, int64_t token, float *to) {
        if (ends.row_bytes) read_row(ends.how, static_cast<const uint8_t *>(ends.embedding) + token * ends.row_bytes, hidden, to);
        else if (ends.wide) std::memcpy(to, static_cast<const float *>(ends.embedding) + token * hidden, hidden * sizeof(float));
        else for (int64_t i = 0; i < hidden; i++) to[i] = widen(static_cast<const bf16 *>(ends.embedding)[token * hidden + i]);
    }

    // Draws the next token of request r from its logits; its confidence.
    static float add_token(const Drafts &d, int r, float *logits, int32_t vocabulary) {
        const int n = d.lengths[r]++;
        float &confidence = d.confidences[r * d.longest + n];
        d.tokens[r * (d.longest + 1) + n + 1] = int32_t(draw(logits, vocabulary, d.sampling[r], d.starts[r] + n + 1, &confidence));
        return confidence;
    }

    Team team;
    Lane all{team};
    struct Turn {  // of one call
        explicit Turn(std::mutex &busy) : one(busy) {}
        ~Turn() { leave_tiles(); }
        std::lock_guard<std::mutex> one;
    };
    std::mutex busy;
    std::vector<float> scores;   // of the knapsack's states, run and left as they are,
    std::vector<Entry> entries;  // and what goes on
    Buffer<float> x_, logits_;
};

}  // namespace
