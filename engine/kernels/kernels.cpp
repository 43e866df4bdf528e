// The C interface of the kernels, called by engine/kernels/library.py's `KernelLibrary`: passes of any sub-network of a
// Llama-like decoder, drafts, verification, search, sampling, and the packing of weights.
//
// Every sum is computed in an order that depends on its row alone: not on the number of rows in the pass, on how
// threads share the work, or on other requests in the batch. A token's logits are therefore the same to the last bit in
// plain decoding and in verification, alone and in a batch.
//
// Layouts (bf16 throughout):
//   weights [out/32][in/2][32][2]: panels of 32 outputs, pairs of inputs together, as dot-product instructions read
//   them;
//           with AVX2 [out/32][2][in/2][16][2], because its sixteen registers hold half a panel's sums.
//   cache   [layers][kv_heads][pages][blocks of 16 positions][K, V]: K as [head_dim/2][16][2], V as [8][head_dim][2].

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "executor.h"
#include "low_bit.h"
#include "sampling.h"
#include "structures.h"
#include "vectors.h"

extern "C" {

// Makes a pool of threads with its scratch memory, which runs one call at a time. It is never freed: when the process
// exits, a call may still be running.
void *ks_new_executor(int threads) { return new Executor(threads); }

// Runs x through the sublayers of a pass.
void ks_run(void *executor, const Model *model, const Cache *cache, const Pass *pass) {
    static_cast<Executor *>(executor)->run(*model, *cache, *pass);
}

// Drafts for several requests. Returns the number of passes.
int ks_draft(void *executor, const Model *model, const Cache *cache, const EmbedAndHead *embed_head,
             const DraftBatch *drafts) {
    return static_cast<Executor *>(executor)->draft(*model, *cache, *embed_head, *drafts);
}

// Runs a pass from token ids to drawn tokens.
void ks_verify(void *executor, const Model *model, const Cache *cache, const EmbedAndHead *embed_head,
               const VerifyBatch *verify) {
    static_cast<Executor *>(executor)->verify(*model, *cache, *embed_head, *verify);
}

// Computes out [rows][l.out] from x [rows][l.in], or from RMSNorm(x) if `norm` [l.in] is not null.
void ks_product(void *executor, const Linear *l, const float *x, int rows, float *out, const float *norm,
                float epsilon) {
    static_cast<Executor *>(executor)->product(*l, x, rows, out, norm, epsilon);
}

// Samples a token for each row of logits [rows][n]. `top_probabilities` [rows] may be null.
void ks_sample(const float *logits, int rows, int32_t n, const Sampling *sampling, const int64_t *positions,
               int64_t *tokens, float *top_probabilities) {
    std::vector<float> copy;
    for (int r = 0; r < rows; r++) {
        const float *row = logits + int64_t(r) * n;
        if (sampling[r].temperature > 0) {  // `sample` changes the row then
            copy.assign(row, row + n);
            row = copy.data();
        }
        tokens[r] = sample(const_cast<float *>(row), n, sampling[r], positions[r],
                           top_probabilities ? top_probabilities + r : nullptr);
    }
}

// Sets the scores [n] of tokens whose bit is 0 to minus infinity.
void ks_mask(float *scores, const uint32_t *bits, int32_t n) {
    for (int32_t i = 0; i < n; i++) scores[i] = bits[i / 32] >> i % 32 & 1 ? scores[i] : MINUS_INFINITY;
}

// Packs bf16 weights [out][in] into panels; outputs beyond the last are zeros. `gated`: a panel holds 16 outputs of the
// first half (the gate) and the corresponding 16 of the second half.
void ks_pack(const bf16 *w, int64_t out, int64_t in, bf16 *to, int gated) {
    for (int64_t panel = 0; panel * PANEL < out; panel++)
        for (int64_t part = 0; part < PANEL; part += STRIPE)
            for (int64_t k = 0; k < in; k += 2)
                for (int64_t j = part; j < part + STRIPE; j++, to += 2) {
                    const int64_t row =
                        gated ? panel * (PANEL / 2) + j % (PANEL / 2) + j / (PANEL / 2) * (out / 2) : panel * PANEL + j;
                    to[0] = row < out ? w[row * in + k] : 0;
                    to[1] = row < out ? w[row * in + k + 1] : 0;
                }
}

// Returns the bytes of a panel of packed weights.
int64_t ks_panel_bytes(const PackedFormat *format, int64_t inputs) { return panel_bytes(*format, inputs); }

// Packs rows of a checkpoint's weights into panels. `rows` [32 · panels] are addresses, null beyond the last output.
void ks_pack_rows(void *executor, const PackedFormat *format, const uint8_t *const *rows, int64_t inputs, int panels,
                  uint8_t *to) {
    static_cast<Executor *>(executor)->pack(*format, rows, inputs, panels, to);
}

// Quantises a layer, or one packed part of it, to panels of codes of `bits` bits (low_bit.h).
void ks_quantise(void *executor, const Linear *l, const PackedPart *part, int bits, int panels, uint8_t *to) {
    static_cast<Executor *>(executor)->quantise(*l, part, bits, panels, to);
}

// Converts `count` rows of packed weights to floats [count][inputs].
void ks_read_rows(const PackedFormat *format, const uint8_t *const *rows, int64_t count, int64_t inputs, float *to) {
    for (int64_t r = 0; r < count; r++) read_row(*format, rows[r], inputs, to + r * inputs);
}

}  // extern "C"
