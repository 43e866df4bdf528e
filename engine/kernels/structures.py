"""Mirror the structures of structures.h in ctypes: same names, same fields, same order.

A structure holds addresses of tensors and arrays, which the caller keeps alive as long as the kernels may read them.
"""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_uint8,
    c_uint64,
    c_void_p,
)

HALVES, FLOATS, LEVELS = range(3)  # `PackedFormat.scales`


class PackedFormat(Structure):
    """Describe how rows of packed weights are written (`quantised.formats.Format`)."""

    _fields_ = tuple(
        (name, c_int32) for name in ("type", "bits", "group", "offset", "minimum", "scales", "block", "block_bytes")
    )


class PackedPart(Structure):
    """Point to some outputs of a linear layer, as panels of packed weights."""

    _fields_ = (("w", c_void_p), ("order", c_void_p), ("format", PackedFormat), ("panels", c_int32))


class Linear(Structure):
    """Point to a weight in bf16 panels (`w`) or in packed parts, and to a float32 bias, if any."""

    _fields_ = (
        ("w", c_void_p),
        ("bias", c_void_p),
        ("out", c_int32),
        ("inputs", c_int32),
        ("parts", POINTER(PackedPart)),
        ("count", c_int32),
        ("precise", c_int32),
    )


class Layer(Structure):
    """Hold one layer's linear layers, each for TARGET and for LOW_BIT (`architecture.spec`)."""

    _fields_ = (
        ("attention_norm", c_void_p),
        ("mlp_norm", c_void_p),
        ("qk_norm", c_void_p),
        ("qkv", Linear * 2),
        ("output", Linear * 2),
        ("gate_up", Linear * 2),
        ("down", Linear * 2),
        ("window", c_int32),
    )


class Model(Structure):
    """Hold a model's shape and its layers."""

    _fields_ = (
        ("layers", c_int32),
        ("hidden", c_int32),
        ("heads", c_int32),
        ("kv_heads", c_int32),
        ("head_dim", c_int32),
        ("intermediate", c_int32),
        ("recent", c_int32),
        ("sinks", c_int32),
        ("epsilon", c_float),
        ("layer", POINTER(Layer)),
    )


class Cache(Structure):
    """Locate the K/V blocks; strides in elements."""

    _fields_ = (("data", c_void_p), ("layer_stride", c_int64), ("slab_stride", c_int64), ("head_stride", c_int64))


class Pass(Structure):
    """Describe the rows of a pass and the sublayers first … last-1 that it runs."""

    _fields_ = (
        ("rope", c_void_p),
        ("x", c_void_p),
        ("slabs", c_void_p),
        ("positions", c_void_p),
        ("plans", c_void_p),
        ("records", c_void_p),
        ("plan_stride", c_int32),
        ("rows", c_int32),
        ("first", c_int32),
        ("last", c_int32),
        ("read_only", c_int32),
    )


class SearchTable(Structure):
    """Hold rows of the knapsack. The kernels write `cosines` and all but the first row of `saved`, `live`, `source` and
    `variant`."""

    _fields_ = (
        ("directions", c_void_p),
        ("saves", POINTER(c_int64)),
        ("states", c_void_p),
        ("cosines", POINTER(c_float)),
        ("saved", POINTER(c_int64)),
        ("live", POINTER(c_int32)),
        ("source", POINTER(c_int32)),
        ("variant", POINTER(c_uint8)),
        ("tau", c_double),
        ("capacity", c_int64),
        ("beam", c_int32),
        ("rows", c_int32),
    )


class Sampling(Structure):
    """Hold how one request samples; `seed` has passed through `seeds.mix64`."""

    _fields_ = (
        ("temperature", c_float),
        ("top_p", c_float),
        ("min_p", c_float),
        ("noise", c_float),
        ("top_k", c_int32),
        ("seed", c_uint64),
    )


class EmbedAndHead(Structure):
    """Point to the weights before and after the layers: embedding, final norm, output heads."""

    _fields_ = (
        ("embedding", c_void_p),
        ("norm", c_void_p),
        ("rope", c_void_p),
        ("head", Linear * 2),
        ("float32", c_int32),
        ("row_bytes", c_int64),
        ("format", PackedFormat),
    )


# (draw, drafted tokens so far, address of the logits [vocab]) -> whether the logits changed.
EDIT_CALLBACK = CFUNCTYPE(c_int32, c_int32, c_int32, c_void_p)
EDIT_BEFORE_DRAW, EDIT_AFTER_DRAW = 1, 2  # when a draft's logits are edited


class DraftBatch(Structure):
    """Describe drafts that run in lock-step. The kernels write `tokens`, `lengths` and `confidences`."""

    _fields_ = (
        ("slabs", POINTER(c_int32)),
        ("starts", POINTER(c_int32)),
        ("max_tokens", POINTER(c_int32)),
        ("plans", c_char_p),
        ("min_confidence", POINTER(c_float)),
        ("pass_worth", POINTER(c_float)),
        ("sampling", POINTER(Sampling)),
        ("edited", c_char_p),
        ("edit", EDIT_CALLBACK),
        ("tokens", POINTER(c_int32)),
        ("lengths", POINTER(c_int32)),
        ("confidences", POINTER(c_float)),
        ("mask_below", c_float),
        ("requests", c_int32),
        ("longest", c_int32),
    )


class VerifyBatch(Structure):
    """Describe a verify pass over rows of tokens. The kernels write `drawn`, `scores` and `records`."""

    _fields_ = (
        ("plan", c_char_p),
        ("tokens", POINTER(c_int32)),
        ("slabs", POINTER(c_int32)),
        ("positions", POINTER(c_int32)),
        ("draw_rows", POINTER(c_int32)),
        ("sampling", POINTER(Sampling)),
        ("edited", c_char_p),
        ("edit", EDIT_CALLBACK),
        ("drawn", POINTER(c_int32)),
        ("scores", POINTER(c_void_p)),
        ("records", c_void_p),
        ("rows", c_int32),
        ("draws", c_int32),
    )
