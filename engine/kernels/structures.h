// What Python describes: native/library.py has the same structures.

#pragma once

#include <cstdint>

#include "vectors.h"

namespace {

// How rows of packed weights are written: engine/quantised/packed.py. Types are ggml's, and two of our own.
enum Type { CODES = -1, FP8 = -2, Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8, Q2_K = 10, Q3_K = 11, Q4_K = 12, Q5_K = 13, Q6_K = 14, IQ4_NL = 20, MXFP4 = 39 };
enum Scales { HALVES, FLOATS, LEVELS };  // float16; float32; small integers times a float16 for 256 weights
struct Written {
    int32_t type, bits, group, offset, minimum, scales, block, block_bytes;
};
struct Part {                // some outputs of a linear layer, in panels: packed.h
    const uint8_t *w;
    const int32_t *order;    // [in]: which input each column is multiplied with, or null
    Written how;
    int32_t panels;
};
struct Linear {              // bf16 panels, or parts
    const bf16 *w; const float *bias; int32_t out, in;
    const Part *parts; int32_t count;
    int32_t precise;         // whether inputs of parts have fifteen bits, not eight
};
// What a plan may run of a sublayer or of the head: engine/architecture/spec.py.
enum Variant { SKIP, TARGET, LOW_BIT, WINDOW, VARIANTS };
constexpr int COPIES = LOW_BIT;  // of a sublayer's weights: TARGET's and LOW_BIT's, which WINDOW runs too
inline int weights_of(int variant) { return (variant < LOW_BIT ? variant : LOW_BIT) - TARGET; }
struct Layer {
    const float *attention_norm, *mlp_norm, *qk_norm;
    Linear qkv[COPIES], output[COPIES], gate_up[COPIES], down[COPIES];
    int32_t window;
};
struct Model {
    int32_t layers, hidden, heads, kv_heads, head_dim, intermediate;
    int32_t recent, sinks;   // the last and the first cached tokens that WINDOW sees
    float epsilon;
    const Layer *layer;
};
struct Cache { bf16 *data; int64_t layer, slab, head; };  // strides in elements
struct Pass {
    const float *rope;       // [positions][head_dim/2][cos, sin]
    float *x;                // [rows][hidden], changed in place
    const int32_t *slabs, *positions;  // [rows]; rows of a slab are neighbours
    const uint8_t *plans;    // the variant of each sublayer: [2·layers], or one such row after another
    float *records;          // [last - first + 1][rows][hidden] or null
    int32_t plan_stride, rows, first, last;
    int32_t own;             // rows see the cache before their position, and themselves; nothing is written
};
struct Table {               // the knapsack of engine/draft/knapsack.py; row r holds what is reached before sublayer first + r
    const float *directions; // [2·layers + 1][rows][hidden], of unit length
    const int64_t *saves;    // [2·layers][VARIANTS]: ticks, or less than 0 where the sublayer has no such variant
    float *states;           // [(1 + VARIANTS)·beam][rows][hidden]: those of row 0, then those of the last, and room
    float *cosines;          // [beam], of the last row
    int64_t *saved;          // [last - first + 1][beam]
    int32_t *live;           // [last - first + 1]: entries
    int32_t *source;         // [last - first + 1][beam]: which entry of the row before,
    uint8_t *variant;        // and by which variant
    double tau;
    int64_t capacity;
    int32_t beam, rows;
};
struct Sampling {
    float temperature, top_p, min_p;  // a temperature of 0 is greedy
    float noise;             // what it is multiplied with: 1 where the model speaks
    int32_t top_k;           // 0 or less: all
    uint64_t seed;           // mixed
};
struct Ends {                // what lies before and behind the layers
    const void *embedding;   // [vocabulary][hidden]: bf16, or float where `wide`, or rows of so many bytes, packed
    const float *norm, *rope;
    Linear head[COPIES];
    int32_t wide;
    int64_t row_bytes;       // 0: not packed
    Written how;
};
// Changes the logits of draw i, which comes after so many drafted tokens, as Python says.
using Edit = int32_t (*)(int32_t i, int32_t drafted, float *row);  // whether it changed the row
enum { BEFORE = 1, AFTER = 2 };  // a token is drawn
struct Drafts {
    const int32_t *slabs, *starts, *most;  // [requests]; positions of the first tokens; tokens to draft at most
    const uint8_t *plans;    // [requests][2·layers + 1]: variants, that of the head last
    const float *least, *worth;  // [requests]: the stop rule of engine/runtime/speculate.py
    const Sampling *sampling;    // [requests]
    const uint8_t *edited;   // [requests]: whose logits to edit, and when; after: the token is drawn again if they changed
    Edit edit;
    int32_t *tokens, *lengths;  // [requests][longest + 1], the first of each given; [requests], how many were drafted
    float *confidences;      // [requests][longest]
    float sure;              // at least so sure, a token is not edited after it was drawn
    int32_t requests, longest;
};
struct Verify {
    const uint8_t *plan;     // [2·layers + 1]: variants, that of the head last
    const int32_t *tokens, *slabs, *positions;  // [rows]
    const int32_t *picked;   // [draws]: rows behind which a token is drawn, in rising order
    const Sampling *sampling;    // [draws]
    const uint8_t *edited;   // [draws]: whose logits to edit before
    Edit edit;
    int32_t *drawn;          // [draws]
    float **scores;          // gets where what was drawn from lies until the next call: [draws][vocabulary], by temperature
    float *records;          // as in Pass
    int32_t rows, draws;
};

}  // namespace
