// Sampling of tokens from logits, exactly as engine/sampling/sample.py defines it. Called by ks_sample, draft and
// verify.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "structures.h"
#include "vectors.h"

namespace {

// Returns the index of the largest element, the first of equals, and its softmax probability if asked for; -1 if all
// elements are NaN or excluded.
int64_t argmax(const float *row, int64_t n, float *probability) {
    // Four independent chains, to hide latency.
    vf best[4] = {splat(MINUS_INFINITY), splat(MINUS_INFINITY), splat(MINUS_INFINITY), splat(MINUS_INFINITY)};
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (int j = 0; j < 4; j++) {
            vf v = load<vf>(row + i + j * LANES);
            best[j] = v > best[j] ? v : best[j];
        }
    for (int j = 1; j < 4; j++) best[0] = best[j] > best[0] ? best[j] : best[0];
    float high = max_lane(best[0]);
    for (; i < n; i++) high = std::max(high, row[i]);
    int64_t first = 0;
    while (first + LANES <= n && !any(load<vf>(row + first) == high)) first += LANES;
    while (first < n && row[first] != high) first++;
    if (probability) {
        vf sum{};
        for (i = 0; i + LANES <= n; i += LANES) sum += exponential(load<vf>(row + i) - high);
        float rest = sum_lanes(sum);
        for (; i < n; i++) rest += exponential(row[i] - high);
        *probability = high == MINUS_INFINITY ? 0.f : 1.f / rest;
    }
    return high == MINUS_INFINITY ? -1 : first;
}

// Computes -Gumbel noise of LANES tokens: log(-log(1 - u)), u from splitmix64's finaliser over key and token.
// twin: engine/sampling/sample.py, gumbel
vf negative_gumbel(uint64_t key, const int32_t *tokens) {
    float uniform[LANES];
    for (int half = 0; half < LANES; half += LANES / 2) {
        vq x;
        for (int j = 0; j < LANES / 2; j++) x[j] = tokens[half + j];
        x = key + x * 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        x ^= x >> 31;
        const vf_half drawn = __builtin_convertvector(x >> 33, vf_half);
        for (int j = 0; j < LANES / 2; j++) uniform[half + j] = std::min((drawn[j] + 0.5f) * 0x1p-31f, 1 - 0x1p-24f);
    }
    return logarithm(-log_one_minus(load<vf>(uniform)));
}
constexpr float MAX_GUMBEL = 22.3f;  // upper bound of the noise: -log(2^-32) = 22.19

// Derives the key of a position's noise from the request's mixed seed.
// twin: engine/sampling/sample.py, noise_key
uint64_t noise_key(uint64_t seed, int64_t position) {
    uint64_t x = (seed ^ uint64_t(position) * 0xd1342543de82ef95u) + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct Candidate {
    float score;
    int32_t token;
};

// Collects the candidates among scores [n], which are divided by the temperature: the top_k highest; of these the
// fewest that hold top_p of the mass; of these all of at least min_p times the highest probability. Sorted by score,
// then token.
// twin: engine/sampling/sample.py, _truncate
void truncate(const float *row, int32_t n, const Sampling &s, std::vector<Candidate> &kept) {
    float probability;
    const int64_t likeliest = argmax(row, n, &probability);
    kept.clear();
    if (likeliest < 0) return;
    const float best = row[likeliest];
    const bool limited = s.top_k > 0 && s.top_k < n;
    // Most scores are far below the highest: look within a distance that grows until it holds all possible candidates.
    for (float depth : {4.f, 12.f, 24.f, 48.f, INFINITY}) {
        kept.clear();
        float mass = 0;
        for (int32_t i = 0; i < n; i++)
            if (row[i] >= best - depth && row[i] != MINUS_INFINITY) kept.push_back({row[i], i});
        if (limited ? int(kept.size()) >= s.top_k : s.top_p >= 1 && std::exp(-depth) <= s.min_p) break;
        for (const Candidate &c : kept) mass += std::exp(c.score - best);
        if (!limited && s.top_p < 1 && mass * probability >= s.top_p) break;
    }
    const auto better = [](const Candidate &a, const Candidate &b) {
        return a.score > b.score || (a.score == b.score && a.token < b.token);
    };
    if (limited && int(kept.size()) > s.top_k) {
        std::nth_element(kept.begin(), kept.begin() + s.top_k, kept.end(), better);
        kept.resize(s.top_k);
    }
    std::sort(kept.begin(), kept.end(), better);
    if (s.top_p < 1) {
        float whole = 1 / probability, before = 0;
        if (limited) {
            whole = 0;
            for (const Candidate &c : kept) whole += std::exp(c.score - best);
        }
        size_t count = 0;
        for (; count < kept.size() && (count == 0 || before < s.top_p * whole); count++)
            before += std::exp(kept[count].score - best);
        kept.resize(count);
    }
    if (s.min_p > 0) {
        const float least = best + std::log(s.min_p);
        while (kept.size() > 1 && kept.back().score < least) kept.pop_back();
    }
}

// Samples a token at `position` from logits [n], which it divides by the temperature. Sets *top_probability, if not
// null, to the largest softmax probability after temperature and truncation. Returns -1 if all logits are NaN or
// excluded.
// twin: engine/sampling/sample.py, process
int64_t sample(float *row, int32_t n, const Sampling &s, int64_t position, float *top_probability) {
    if (s.temperature <= 0) return argmax(row, n, top_probability);
    for (int32_t i = 0; i < n; i++) row[i] /= s.temperature;
    const uint64_t key = noise_key(s.seed, position);
    if (s.top_k <= 0 && s.top_p >= 1 && s.min_p <= 0) {
        // Noise is bounded, so only scores near the best one can win; the others need no noise computed.
        int32_t token = int32_t(argmax(row, n, top_probability)), tokens[LANES] = {token};
        if (token < 0) return token;
        float best = row[token] - s.noise * negative_gumbel(key, tokens)[0];
        for (int32_t first = 0; first < n; first += LANES) {
            float scores[LANES];
            const int some = std::min(LANES, n - first);
            if (some == LANES) store(scores, load<vf>(row + first));
            else
                for (int j = 0; j < LANES; j++) scores[j] = j < some ? row[first + j] : MINUS_INFINITY;
            if (!any(load<vf>(scores) > best - s.noise * MAX_GUMBEL)) continue;
            for (int j = 0; j < LANES; j++) tokens[j] = first + j;
            const vf noisy = load<vf>(scores) - s.noise * negative_gumbel(key, tokens);
            if (!any(noisy >= best)) continue;
            for (int j = 0; j < LANES; j++)
                if (noisy[j] > best || (noisy[j] == best && first + j < token)) {
                    best = noisy[j];
                    token = first + j;
                }
        }
        return token;
    }
    thread_local std::vector<Candidate> kept;
    truncate(row, n, s, kept);
    float sum = 0, best = MINUS_INFINITY;
    int32_t token = kept.empty() ? -1 : kept[0].token;
    for (size_t first = 0; first < kept.size(); first += LANES) {
        const int some = int(std::min<size_t>(LANES, kept.size() - first));
        int32_t tokens[LANES] = {};
        for (int j = 0; j < some; j++) tokens[j] = kept[first + j].token;
        const vf noise = s.noise * negative_gumbel(key, tokens);
        for (int j = 0; j < some; j++) {
            const float score = kept[first + j].score - noise[j];
            sum += std::exp(kept[first + j].score - kept[0].score);
            if (score > best || (score == best && tokens[j] < token)) {
                best = score;
                token = tokens[j];
            }
        }
    }
    if (top_probability) *top_probability = sum > 0 ? 1 / sum : 0;
    return token;
}

}  // namespace
