// A pass of any sub-network of a Llama-like decoder over bf16 weights and a bf16 K/V cache, in one call.
//
// Every sum runs in an order that depends on the row alone: not on how many rows share the pass, on the split among
// threads, or on what else the batch holds. A token's logits are therefore the same to the last bit in plain decoding
// and in verification, alone and in a batch.
//
// Layouts (bf16 throughout):
//   weights [out/32][in/2][32][2]: panels of 32 outputs, pairs of inputs together, as dot-product instructions want;
//           with sixteen registers [out/32][2][in/2][16][2].
//   cache   [layers][slabs][kv_heads][blocks of 16 positions][K, V]: K as [head_dim/2][16][2], V as [8][head_dim][2];
//           a slab is a multiple of 64 positions.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "drawing.h"
#include "low_bit.h"
#include "runner.h"
#include "structures.h"
#include "vectors.h"

extern "C" {

// A team of threads with its scratch memory; one pass at a time. It lives as long as the process, for at exit a pass may
// still be running.
void *ks_team(int threads) { return new Runner(threads); }

uint64_t ks_read(void *team, const uint64_t *data, int64_t bytes) {
    return static_cast<Runner *>(team)->read(data, bytes / 8);
}

// [out][in] to panels; outputs beyond the last are zeros. `gated`: a panel is 16 outputs of the first half and the same
// 16 of the second.
void ks_pack(const bf16 *w, int64_t out, int64_t in, bf16 *to, int gated) {
    for (int64_t panel = 0; panel * PANEL < out; panel++)
        for (int64_t part = 0; part < PANEL; part += TOGETHER)
            for (int64_t k = 0; k < in; k += 2)
                for (int64_t j = part; j < part + TOGETHER; j++, to += 2) {
                    const int64_t row = gated ? panel * (PANEL / 2) + j % (PANEL / 2) + j / (PANEL / 2) * (out / 2) : panel * PANEL + j;
                    to[0] = row < out ? w[row * in + k] : 0;
                    to[1] = row < out ? w[row * in + k + 1] : 0;
                }
}

// Bytes of a panel of packed weights.
int64_t ks_panel_bytes(const Written *how, int64_t inputs) { return panel_bytes(*how, inputs); }

// Pointers to `rows`, null where there are none to fill the last panel, to panels.
void ks_pack_rows(void *team, const Written *how, const uint8_t *const *rows, int64_t inputs, int panels, uint8_t *to) {
    static_cast<Runner *>(team)->pack(*how, rows, inputs, panels, to);
}

// A copy of a layer, or of one part of it, in codes of so many bits: panels of the format that `low_bit` describes in Python.
void ks_lower(void *team, const Linear *l, const Part *part, int bits, int panels, uint8_t *to) {
    static_cast<Runner *>(team)->lower(*l, part, bits, panels, to);
}

// Rows of packed weights as floats [count][inputs].
void ks_read_rows(const Written *how, const uint8_t *const *rows, int64_t count, int64_t inputs, float *to) {
    for (int64_t r = 0; r < count; r++) read_row(*how, rows[r], inputs, to + r * inputs);
}

void ks_pass(void *team, const Model *model, const Cache *cache, const Pass *pass) {
    static_cast<Runner *>(team)->pass(*model, *cache, *pass);
}

// `pass` has live·rows rows, one sublayer, and room at x for twice as many rows.
void ks_fill(void *team, const Model *model, const Cache *cache, const Pass *pass, const Table *table) {
    static_cast<Runner *>(team)->fill(*model, *cache, *pass, *table);
}

int ks_draft(void *team, const Model *model, const Cache *cache, const Ends *ends, const Drafts *drafts) {
    return static_cast<Runner *>(team)->draft(*model, *cache, *ends, *drafts);
}

void ks_verify(void *team, const Model *model, const Cache *cache, const Ends *ends, const Verify *verify) {
    static_cast<Runner *>(team)->verify(*model, *cache, *ends, *verify);
}

// x [rows][in] f32, normed if there is a norm's weight -> out [rows][l.out] f32.
void ks_product(void *team, const Linear *l, const float *x, int rows, float *out, const float *norm, float epsilon) {
    static_cast<Runner *>(team)->product(*l, x, rows, out, norm, epsilon);
}

// Leaves the scores of tokens whose bit is set.
void ks_mask(float *scores, const uint32_t *bits, int32_t n) {
    for (int32_t i = 0; i < n; i++) scores[i] = bits[i / 32] >> i % 32 & 1 ? scores[i] : NEVER;
}

// Of each row of logits [rows][n], at its position: `draw`. Shares only if asked for.
void ks_draw(const float *logits, int rows, int32_t n, const Sampling *sampling, const int64_t *positions, int64_t *tokens, float *shares) {
    std::vector<float> copy;
    for (int r = 0; r < rows; r++) {
        const float *row = logits + int64_t(r) * n;
        if (sampling[r].temperature > 0) {
            copy.assign(row, row + n);
            row = copy.data();
        }
        tokens[r] = draw(const_cast<float *>(row), n, sampling[r], positions[r], shares ? shares + r : nullptr);
    }
}

}
