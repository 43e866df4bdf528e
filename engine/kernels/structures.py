"""Mirror the structures of structures.h in ctypes: same names, same fields, same order.

A structure holds addresses of tensors and arrays, which the caller keeps alive as long as the kernels may read them.
"""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_float, c_int32, c_int64, c_void_p
from typing import Any

HALVES, FLOATS, LEVELS = range(3)  # `PackedFormat.scales`

_INT32S, _FLOATS = POINTER(c_int32), POINTER(c_float)


def _fields(*declarations: tuple[Any, str]) -> tuple[tuple[str, Any], ...]:
    """Declare fields as C does: a type, and the names of successive fields that have it."""
    return tuple((name, kind) for kind, names in declarations for name in names.split())


class PackedFormat(Structure):
    """Describe how rows of packed weights are written (`quantised.formats.Format`)."""

    _fields_ = _fields((c_int32, "type bits group offset minimum scales block block_bytes"))


class PackedPart(Structure):
    """Point to some outputs of a linear layer, as panels of packed weights."""

    _fields_ = _fields((c_void_p, "w order"), (PackedFormat, "format"), (c_int32, "panels"))


class Linear(Structure):
    """Point to a weight in bf16 panels (`w`) or in packed parts, and to a float32 bias, if any."""

    _fields_ = _fields(
        (c_void_p, "w bias"), (c_int32, "out inputs"), (POINTER(PackedPart), "parts"), (c_int32, "count precise")
    )


class Layer(Structure):
    """Hold one layer's linear layers, each for TARGET and for LOW_BIT (`plans`)."""

    _fields_ = _fields(
        (c_void_p, "attention_norm mlp_norm qk_norm"), (Linear * 2, "qkv output gate_up down"), (c_int32, "window")
    )


class Model(Structure):
    """Hold a model's shape and its layers."""

    _fields_ = _fields(
        (c_int32, "layers hidden heads kv_heads head_dim intermediate recent sinks"),
        (c_float, "epsilon"),
        (POINTER(Layer), "layer"),
    )


class Cache(Structure):
    """Locate the K/V blocks; strides in elements."""

    _fields_ = _fields(
        (c_void_p, "data tables"), (c_int64, "layer_stride head_stride"), (c_int32, "pages_per_slab blocks_per_page")
    )


class Pass(Structure):
    """Describe the rows of a pass and the sublayers first … last-1 that it runs."""

    _fields_ = _fields(
        (c_void_p, "rope x slabs positions plans records"),
        (c_int32, "plan_stride rows first last read_only"),
    )


class Sampling(Structure):
    """Hold how one request samples; `seed` has passed through `seeds.mix64`."""

    _fields_ = _fields((c_float, "temperature top_p min_p noise"), (c_int32, "top_k"), (ctypes.c_uint64, "seed"))


class EmbedAndHead(Structure):
    """Point to the weights before and after the layers: embedding, final norm, output heads."""

    _fields_ = _fields(
        (c_void_p, "embedding norm rope"),
        (Linear * 2, "head"),
        (c_int32, "float32"),
        (c_int64, "row_bytes"),
        (PackedFormat, "format"),
    )


# (draw, drafted tokens so far, address of the logits [vocab]) -> whether the logits changed.
EDIT_CALLBACK = CFUNCTYPE(c_int32, c_int32, c_int32, c_void_p)
EDIT_BEFORE_DRAW, EDIT_AFTER_DRAW = 1, 2  # when a draft's logits are edited


class DraftBatch(Structure):
    """Describe drafts that run in lock-step. The kernels write `tokens`, `lengths` and `confidences`."""

    _fields_ = _fields(
        (_INT32S, "slabs starts max_tokens"),
        (c_char_p, "plans"),
        (_FLOATS, "min_confidence"),
        (POINTER(Sampling), "sampling"),
        (c_char_p, "edited"),
        (EDIT_CALLBACK, "edit"),
        (_INT32S, "tokens lengths"),
        (_FLOATS, "confidences"),
        (c_float, "mask_below"),
        (c_int32, "requests longest"),
    )


class VerifyBatch(Structure):
    """Describe a verify pass over rows of tokens. The kernels write `drawn`, `scores` and `records`."""

    _fields_ = _fields(
        (c_char_p, "plan"),
        (_INT32S, "tokens slabs positions draw_rows"),
        (POINTER(Sampling), "sampling"),
        (c_char_p, "edited"),
        (EDIT_CALLBACK, "edit"),
        (_INT32S, "drawn"),
        (POINTER(c_void_p), "scores"),
        (c_void_p, "records"),
        (c_int32, "rows draws"),
    )
