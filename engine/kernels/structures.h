// The arguments of the functions in kernels.cpp. structures.py mirrors every structure: same names, fields and order.
//
// Arrays are row-major; their shapes stand in brackets. The caller owns all memory.

#pragma once

#include <cstdint>

#include "vectors.h"

namespace {

// How packed weights are encoded: ggml's numbers for its types, negative ones for two types of our own.
enum PackedType {
    CODES = -1,  // plain integer codes, followed by their float32 scales (engine/quantised/packed.py)
    FP8 = -2,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    IQ4_NL = 20,
    MXFP4 = 39
};

// How a panel stores scales: float16; float32; or int8 levels times one float16 per chunk of 256 weights.
enum ScaleKind { HALVES, FLOATS, LEVELS };

// A weight is (code - offset) · scale, plus a minimum if the format has one. See engine/quantised/formats.py.
struct PackedFormat {
    int32_t type;
    int32_t bits;                // of a code, once unpacked into panels
    int32_t group;               // neighbouring inputs that share a scale
    int32_t offset;              // the code of zero
    int32_t minimum;             // whether groups have a minimum
    int32_t scales;              // a ScaleKind
    int32_t block, block_bytes;  // weights stored together in a row of the checkpoint, and their size
};

// Some outputs of a linear layer as panels of packed weights (packed_layout.h).
struct PackedPart {
    const uint8_t *w;
    const int32_t *order;  // [in]: the input that each column multiplies, or null if column i multiplies input i
    PackedFormat format;
    int32_t panels;
};

// A linear layer: bf16 panels at `w`, or, if `parts` is not null, packed parts.
struct Linear {
    const bf16 *w;
    const float *bias;  // [out] or null
    int32_t out, in;
    const PackedPart *parts;
    int32_t count;    // of parts
    int32_t precise;  // whether inputs of packed parts are rounded to 15 bits instead of 8
};

// What a plan runs in place of a sublayer or of the head (engine/architecture/spec.py). WINDOW runs LOW_BIT's weights
// and sees only part of the context.
enum Variant { SKIP, TARGET, LOW_BIT, WINDOW, VARIANTS };
constexpr int COPIES = LOW_BIT;  // of every weight: TARGET's and LOW_BIT's
inline int weight_copy(int variant) { return (variant < LOW_BIT ? variant : LOW_BIT) - TARGET; }

struct Layer {
    const float *attention_norm, *mlp_norm;  // [hidden]
    const float *qk_norm;                    // [heads + kv_heads][head_dim] or null
    Linear qkv[COPIES], output[COPIES], gate_up[COPIES], down[COPIES];
    int32_t window;  // positions that a row sees, its own included; 0: all
};

struct Model {
    int32_t layers, hidden, heads, kv_heads, head_dim, intermediate;
    int32_t recent, sinks;  // how many of the last and of the first cached tokens WINDOW sees
    float epsilon;          // of RMSNorm
    const Layer *layer;     // [layers]
};

// The K/V cache; kernels.cpp describes its blocks. Strides in elements.
struct Cache {
    bf16 *data;             // [layers][kv_heads][pages][blocks_per_page] blocks
    const int32_t *tables;  // [slabs][pages_per_slab]: the pages of each slab
    int64_t layer_stride, head_stride;
    int32_t pages_per_slab, blocks_per_page;
};

// Rows that go through sublayers first … last - 1. A slab is one request's part of the cache.
struct Pass {
    const float *rope;         // [positions][head_dim/2][cosine, sine]
    float *x;                  // [rows][hidden], the residual stream, changed in place
    const int32_t *slabs;      // [rows]; rows of one slab are neighbours
    const int32_t *positions;  // [rows]
    const uint8_t *plans;      // variants [2·layers], for row r at plans + r · plan_stride
    float *records;       // [last - first + 1][rows][hidden], the stream before each sublayer and at the end, or null
    int32_t plan_stride;  // 0 if all rows share a plan
    int32_t rows, first, last;
    int32_t read_only;  // a row sees the cache before its position, and itself; the cache does not change
};

// How one request samples. sampling.h and engine/sampling/sample.py compute the same.
struct Sampling {
    float temperature;  // 0: greedy
    float top_p, min_p;
    float noise;    // factor of the Gumbel noise: 1 for the target, at most 1 for drafts
    int32_t top_k;  // 0 or less: no limit
    uint64_t seed;  // after engine/sampling/seeds.py's mix64
};

// The weights before and after the layers.
struct EmbedAndHead {
    const void *embedding;  // [vocabulary][hidden] of bf16, or of float if `float32`; packed rows if row_bytes > 0
    const float *norm, *rope;
    Linear head[COPIES];
    int32_t float32;
    int64_t row_bytes;    // of a packed row; 0: the embedding is not packed
    PackedFormat format;  // of packed rows
};

// Calls Python, which may edit the logits of draw i after `drafted` drafted tokens. Returns whether they changed.
using EditCallback = int32_t (*)(int32_t i, int32_t drafted, float *logits);
enum EditTime { EDIT_BEFORE_DRAW = 1, EDIT_AFTER_DRAW = 2 };

// Drafts of several requests in lock-step. The stop rule is that of engine/runtime/speculate.py.
struct DraftBatch {
    const int32_t *slabs;         // [requests]
    const int32_t *starts;        // [requests]: position of the first token
    const int32_t *max_tokens;    // [requests]
    const uint8_t *plans;         // [requests][2·layers + 1]: variants; the last is the head's
    const float *min_confidence;  // [requests]: a draft ends after a token of less
    const Sampling *sampling;     // [requests]
    const uint8_t *edited;        // [requests]: an EditTime, or 0; after: if the edit changed the logits, draw again
    EditCallback edit;
    int32_t *tokens;     // [requests][longest + 1]: the last known token, which the caller sets; then the draft
    int32_t *lengths;    // [requests]: of the drafts
    float *confidences;  // [requests][longest]
    float mask_below;    // skip EDIT_AFTER_DRAW for tokens of at least this confidence
    int32_t requests, longest;
};

// A verify pass, and the tokens drawn after some of its rows.
struct VerifyBatch {
    const uint8_t *plan;                        // [2·layers + 1]: variants; the last is the head's
    const int32_t *tokens, *slabs, *positions;  // [rows]
    const int32_t *draw_rows;                   // [draws]: rows after which a token is drawn, ascending
    const Sampling *sampling;                   // [draws]
    const uint8_t *edited;                      // [draws]: whether to edit the logits before the draw
    EditCallback edit;
    int32_t *drawn;  // [draws]: tokens
    float **scores;  // set to the logits [draws][vocabulary], divided by the temperature; valid until the next call
    float *records;  // as in Pass
    int32_t rows, draws;
};

}  // namespace
