// Decisions of draft policies: the arithmetic of engine/draft/tpt.py, objective.py and alike.py, whose definitions hold
// (the tests compare). A decision is made every few milliseconds, where array operations of Python, whose code and
// data the passes have pushed out of the caches, take as long as a pass of a small model.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

constexpr int BINS = 7, CELLS = 2 * BINS;  // rejected and agreed of each bin of confidence
constexpr int FEATURES = 2048, WORDS = FEATURES / 64;
constexpr int MOST_PLANS = 16, BROUGHT = 4;
constexpr int REQUESTS = 128, USERS = REQUESTS / 64;

enum Kernel { EVIDENCE, PROMISES, KERNELS };

struct Memory {
    uint64_t *features;     // [REQUESTS, WORDS]: bits
    int32_t *having;        // [FEATURES]: requests with each
    float *counts;          // [REQUESTS, columns, CELLS]: tested tokens
    float *tested;          // [REQUESTS]: their sum
    double *brought;        // [REQUESTS, BROUGHT]
    int64_t *begun;         // [REQUESTS]: their numbers, as they came
    double most_tested, most_made;
    double bandwidth[KERNELS], strange[KERNELS];
    double rarity[REQUESTS + 1][KERNELS];  // weight of a feature that so many requests have
    double norm[REQUESTS][KERNELS];        // of each request's features, summed, kept as they change
    uint64_t users[FEATURES][USERS];       // bits: the requests with each feature
    int32_t columns, few_undrafted;
};

struct Alike {
    const double *known;     // [plans, CELLS]: what all have seen
    const int32_t *columns;  // [plans]
    double *found;           // [1 + plans, CELLS], written: the ratio, and what requests alike saw of each plan
    double *agreement;       // [plans], written
    const double *prior;     // [CELLS], made-up tokens of every plan
    double shared, pooled, pooled_from, most, usual;
    int32_t plans, slot;
};

struct Choosing {
    const double *known, *own;    // [plans, CELLS]: what all have seen, and the request that asks
    const double *const *alike;   // `found` of each that asks
    const double *prior;          // [CELLS], made-up tokens of every plan
    const double *draft, *trust;  // [plans]: seconds of a pass; by how much promises are corrected
    const double *knots, *verify; // [points]: rows, ascending, and seconds of a pass of so many
    double overhead, accepted;    // seconds of a round beside its passes, and more of them for each accepted token
    double shared, pooled, pooled_from, drift, hope;
    int32_t plans, likes, gamma, requests, points;
};

struct Promised {
    const double *likely;       // [BROUGHT + CELLS]: of requests alike
    double known[CELLS], own[CELLS];  // what all have seen of the plan, and the request
    double brought[2];                // of the request by a decision of all
    double gain, as_all, as_others, as_others_made;
    int32_t threshold, gamma, seen, decided;  // `seen`: whether it has; `decided`: by that
};

struct Chosen {
    double tpt, drafted, accepted;
    int32_t plan, threshold, gamma;
};

template <int SIZE = WORDS, class F> void each_bit(const uint64_t *bits, F f) {
    for (int w = 0; w < SIZE; w++)
        for (uint64_t left = bits[w]; left; left &= left - 1) f(64 * w + __builtin_ctzll(left));
}

double total(const double *cells) {
    double sum = 0;
    for (int c = 0; c < CELLS; c++) sum += cells[c];
    return sum;
}

// Seconds of a verify pass: linear between the knots, which are asked for in ascending order.
class Curve {
  public:
    explicit Curve(const Choosing &c) : c(c) {}
    double operator()(double rows) {
        if (rows >= c.knots[c.points - 1]) return c.verify[c.points - 1];
        if (rows < c.knots[at]) at = 0;
        while (c.knots[at + 1] <= rows) at++;
        const double share = (rows - c.knots[at]) / (c.knots[at + 1] - c.knots[at]);
        return c.verify[at] + share * (c.verify[at + 1] - c.verify[at]);
    }

  private:
    const Choosing &c;
    int at = 0;
};

// What all have seen, with what is believed beforehand, in weight at most `shared` tokens of each plan.
template <class Asked> void smooth(const Asked &a, double cells[][CELLS]) {
    double pool[CELLS] = {};
    for (int p = 0; p < a.plans; p++) {
        const double scale = a.pooled_from / std::max(total(a.known + p * CELLS), a.pooled_from);
        for (int i = 0; i < CELLS; i++) pool[i] += scale * a.known[p * CELLS + i];
    }
    const double all = std::max(total(pool), 1.0);
    for (int p = 0; p < a.plans; p++) {
        for (int i = 0; i < CELLS; i++) cells[p][i] = a.known[p * CELLS + i] + a.prior[i] + a.pooled * pool[i] / all;
        const double scale = a.shared / std::max(total(cells[p]), a.shared);
        for (int i = 0; i < CELLS; i++) cells[p][i] *= scale;
    }
}

// One request more has a feature, or less, which makes it more common for all of them.
void count(Memory *m, int feature, int32_t slot, int change) {
    const double *before = m->rarity[m->having[feature]], *now = m->rarity[m->having[feature] += change];
    const double more[KERNELS] = {now[EVIDENCE] - before[EVIDENCE], now[PROMISES] - before[PROMISES]};
    uint64_t *users = m->users[feature];
    users[slot / 64] ^= uint64_t(1) << (slot % 64);
    each_bit<USERS>(users, [&](int j) {
        for (int k = 0; k < KERNELS; k++) m->norm[j][k] += more[k];
    });
}

// Calls f(j, share) for each remembered request that saw drafts tested, but for `slot`: how much it counts, by how alike
// their prompts are.
template <class F> void each_like(const Memory &m, Kernel k, int32_t slot, F f) {
    double cosines[REQUESTS] = {}, nearest = m.strange[k];
    each_bit(m.features + int64_t(slot) * WORDS, [&](int feature) {
        const double weight = m.rarity[m.having[feature]][k];
        each_bit<USERS>(m.users[feature], [&](int j) { cosines[j] += weight; });
    });
    const auto counts_for = [&](int j) { return j != slot && m.tested[j] > 0; };
    for (int j = 0; j < REQUESTS; j++) {
        cosines[j] /= std::sqrt(std::max(m.norm[j][k] * m.norm[slot][k], 1e-9));
        if (counts_for(j)) nearest = std::max(nearest, cosines[j]);
    }
    for (int j = 0; j < REQUESTS; j++)
        if (counts_for(j)) f(j, std::exp((cosines[j] - nearest) / m.bandwidth[k]));
}

// What is believed of one plan's drafts, by what requests alike saw and the one that asks.
void believe(const Choosing &c, int plan, double *cells) {
    const double *own = c.own + plan * CELLS;
    if (c.likes) {
        const double before = total(cells);
        double counts[CELLS] = {};
        for (int i = 0; i < CELLS; i++) {
            double ratio = 0;
            for (int j = 0; j < c.likes; j++) {
                ratio += c.alike[j][i] / c.likes;
                counts[i] += c.alike[j][(1 + plan) * CELLS + i] / c.likes;
            }
            cells[i] *= ratio;
        }
        const double shape = before / std::max(total(cells), 1e-9);
        for (int i = 0; i < CELLS; i++) cells[i] = shape * cells[i] + counts[i];
    }
    for (int i = 0; i < CELLS; i += 2) {
        cells[i] += (1 - c.drift) * cells[i + 1] + own[i];
        cells[i + 1] = c.drift * cells[i + 1] + own[i + 1];
    }
}

// The highest TPT of one plan over thresholds and γ ≥ 1, or that of one threshold and γ.
Chosen best_of(const Choosing &c, int plan, const double *cells, Curve &verify, const Chosen *only = nullptr) {
    const double all = total(cells);
    Chosen best{-1, 0, 0, plan, 0, 0};
    double above[BINS][2] = {};
    for (int b = BINS - 1; b >= 0; b--)
        for (int a = 0; a < 2; a++) above[b][a] = cells[2 * b + a] / all + (b + 1 < BINS ? above[b + 1][a] : 0.0);
    const double agreed = above[0][1];
    for (int t = only ? only->threshold : 0; t < (only ? only->threshold + 1 : BINS); t++) {
        const double sure = above[t][0] + above[t][1], both = above[t][1];
        double drafted = 0, kept = 0, passes = 0, alive = 1, reached = 1;
        for (int gamma = 1; gamma <= (only ? only->gamma : c.gamma); gamma++, alive *= sure, reached *= both) {
            drafted += alive;
            kept += reached;
            passes += c.requests == 1 ? alive : 1 - std::pow(1 - alive, c.requests);
            const double accepted = agreed * kept;
            const double seconds = passes * c.draft[plan] + verify(c.requests * (1 + drafted)) + c.overhead +
                                   c.requests * accepted * c.accepted;
            const double tpt = (1 + accepted) / seconds * c.trust[plan];
            if (only ? gamma == only->gamma : tpt > best.tpt) best = {tpt, drafted, accepted, plan, t, gamma};
        }
    }
    return best;
}

}  // namespace

extern "C" {

// Remember a request by its tokens; returns its slot. The oldest is forgotten, of those whose drafts were never tested if
// they are many.
int32_t ks_remember(Memory *m, const uint32_t *tokens, int64_t n, int64_t number) {
    int32_t oldest = 0, undrafted = 0, oldest_undrafted = -1;
    for (int32_t j = 0; j < REQUESTS; j++) {
        if (m->begun[j] < m->begun[oldest]) oldest = j;
        if (m->tested[j] > 0) continue;
        undrafted++;
        if (oldest_undrafted < 0 || m->begun[j] < m->begun[oldest_undrafted]) oldest_undrafted = j;
    }
    const int32_t slot = undrafted > m->few_undrafted ? oldest_undrafted : oldest;
    m->begun[slot] = number;
    m->tested[slot] = 0;
    std::fill_n(m->counts + int64_t(slot) * m->columns * CELLS, m->columns * CELLS, 0.0f);
    std::fill_n(m->brought + int64_t(slot) * BROUGHT, BROUGHT, 0.0);
    uint64_t *bits = m->features + int64_t(slot) * WORDS;
    each_bit(bits, [&](int f) { count(m, f, slot, -1); });
    std::fill_n(bits, WORDS, 0);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t f = (tokens[i] * 2654435761u) >> 21;
        bits[f / 64] |= uint64_t(1) << (f % 64);
    }
    each_bit(bits, [&](int f) { count(m, f, slot, 1); });
    for (int k = 0; k < KERNELS; k++) {
        m->norm[slot][k] = 0;
        each_bit(bits, [&](int f) { m->norm[slot][k] += m->rarity[m->having[f]][k]; });
    }
    return slot;
}

void ks_alike(const Memory *m, const Alike *a) {
    std::fill(a->found, a->found + (1 + a->plans) * CELLS, 0.0);
    double *ratio = a->found, *of_plans = a->found + CELLS;
    each_like(*m, EVIDENCE, a->slot, [&](int j, double share) {
        const double scale = share * std::min(m->most_tested / m->tested[j], 1.0);
        for (int p = 0; p < a->plans; p++) {
            const float *counts = m->counts + (int64_t(j) * m->columns + a->columns[p]) * CELLS;
            for (int c = 0; c < CELLS; c++) of_plans[p * CELLS + c] += scale * counts[c];
        }
    });
    double known[MOST_PLANS][CELLS];
    smooth(*a, known);
    double seen[CELLS] = {}, expected[CELLS] = {}, mean[CELLS] = {}, all = 0;
    for (int p = 0; p < a->plans; p++) {
        const double *counts = of_plans + p * CELLS;
        const double tested = total(counts), of = total(known[p]);
        all += tested;
        for (int c = 0; c < CELLS; c++) {
            seen[c] += counts[c];
            expected[c] += tested * known[p][c] / of;
            mean[c] += known[p][c] / of / a->plans;
        }
    }
    for (int c = 0; c < CELLS; c++) {
        const double usual = (expected[c] + mean[c]) / (all + 1) * a->usual;
        ratio[c] = (seen[c] + usual) / (expected[c] + usual);
    }
    for (int p = 0; p < a->plans; p++) {
        double *counts = of_plans + p * CELLS;
        const double tested = total(counts), share = std::min(a->most / std::max(tested, 1e-9), 1.0);
        double shaped[CELLS], of = 0, agreed = 0;
        for (int c = 0; c < CELLS; c++) {
            counts[c] *= share;
            of += shaped[c] = known[p][c] * ratio[c];
        }
        const double scale = total(known[p]) / std::max(of, 1e-9);
        for (int c = 1; c < CELLS; c += 2) agreed += scale * shaped[c] + counts[c];
        a->agreement[p] = agreed / (total(known[p]) + share * tested);
    }
}

// Of one plan: what it brought requests alike, and what they saw of its drafts; found [BROUGHT + CELLS].
void ks_likely(const Memory *m, int32_t slot, int32_t column, double *found) {
    std::fill(found, found + BROUGHT + CELLS, 0.0);
    each_like(*m, PROMISES, slot, [&](int j, double share) {
        const double *brought = m->brought + int64_t(BROUGHT) * j;
        for (int i = 0; i < BROUGHT; i++)
            found[i] += share * std::min(m->most_made / std::max(brought[i | 1], 1.0), 1.0) * brought[i];
        const double scale = share * std::min(m->most_tested / m->tested[j], 1.0);
        const float *counts = m->counts + (int64_t(j) * m->columns + column) * CELLS;
        for (int c = 0; c < CELLS; c++) found[BROUGHT + c] += scale * counts[c];
    });
}

// What a choice means for one request: told[0] is the factor on its promise, told[1] A ÷ D.
void ks_corrected(const Promised *p, double *told) {
    double undrafted = p->likely[2 * p->decided], made = p->likely[2 * p->decided + 1];
    double cells[CELLS], believed = p->as_all;
    std::copy(p->likely + BROUGHT, p->likely + BROUGHT + CELLS, cells);
    if (p->brought[1] > 0 && !p->decided) {
        const double share = p->as_others_made / std::max(made, p->as_others_made);
        undrafted = share * undrafted + p->brought[0];
        made = share * made + p->brought[1];
    }
    if (p->seen) {
        if (p->decided) believed += total(p->own);
        const double share = p->as_others / std::max(total(cells), p->as_others);
        for (int c = 0; c < CELLS; c++) cells[c] = share * cells[c] + p->own[c];
    }
    const double usual = p->as_all / std::max(total(p->known), p->as_all);
    double agreed = 0, sure = 0, both = 0;
    for (int c = 0; c < CELLS; c++) {
        cells[c] += usual * p->known[c];
        if (c % 2) agreed += cells[c];
        if (c < 2 * p->threshold) continue;
        sure += cells[c];
        if (c % 2) both += cells[c];
    }
    double all = total(cells), drafted = 0, accepted = 0, alive = 1, reached = 1;
    if (all == 0) all = 1;
    for (int k = 0; k < p->gamma; k++, alive *= sure / all, reached *= both / all) drafted += alive, accepted += reached;
    told[0] = (made + believed) / (p->gain * undrafted + believed);
    told[1] = agreed / all * accepted / drafted;
}

// The best plan, threshold and γ; with `hope`, also those of another plan that would be better still if so many tokens
// more were seen to agree, and what it promises there without: chosen[1].plan is -1 where there is none.
void ks_choose(const Choosing *c, Chosen *chosen) {
    double cells[MOST_PLANS][CELLS];
    smooth(*c, cells);
    for (int p = 0; p < c->plans; p++) believe(*c, p, cells[p]);
    Curve verify(*c);
    Chosen best{-1, 0, 0, -1, 0, 0};
    for (int p = 0; p < c->plans; p++)
        if (const Chosen found = best_of(*c, p, cells[p], verify); found.tpt > best.tpt) best = found;
    chosen[0] = best;
    chosen[1].plan = -1;
    if (c->hope == 0) return;
    Chosen hoped = best;
    for (int p = 0; p < c->plans; p++) {
        if (p == best.plan) continue;
        cells[p][CELLS - 1] += c->hope;
        if (const Chosen found = best_of(*c, p, cells[p], verify); found.tpt > hoped.tpt) hoped = found;
        cells[p][CELLS - 1] -= c->hope;
    }
    if (hoped.plan != best.plan) chosen[1] = best_of(*c, hoped.plan, cells[hoped.plan], verify, &hoped);
}

// The highest TPT of each plan [plans], any number of them, by what all have seen alone.
void ks_promises(const Choosing *c, double *tpt) {
    std::vector<double> cells(int64_t(c->plans) * CELLS);
    smooth(*c, reinterpret_cast<double(*)[CELLS]>(cells.data()));
    Curve verify(*c);
    for (int p = 0; p < c->plans; p++) tpt[p] = best_of(*c, p, &cells[int64_t(p) * CELLS], verify).tpt;
}
}
