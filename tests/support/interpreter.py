"""Triton's interpreter, made to compute with bfloat16 as GPUs do.

The interpreter holds such numbers as integers of 16 bits. Left alone, it multiplies those, and converts by cutting bits
off instead of rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

_names = vars(interpreter)
_convert, _dot = _names["_convert_float"], interpreter.InterpreterBuilder.create_dot


def _converted(x: np.ndarray, source: Any, target: Any, rounding: Any) -> np.ndarray:
    if (source, target) == (tl.bfloat16, tl.float32):
        return x.astype(np.uint32) << 16
    if (source, target) == (tl.float32, tl.bfloat16):
        bits = x.view(np.uint32)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # to the nearest, ties to the even one
        return np.where(np.isnan(x), 0x7FC0, rounded).astype(np.uint16)
    result: np.ndarray = _convert(x, source, target, rounding)
    return result


def _multiplied(self: Any, a: Any, b: Any, *rest: Any) -> Any:
    wide = [self.cast_impl(x, tl.float32) if x.dtype.scalar == tl.bfloat16 else x for x in (a, b)]
    return _dot(self, *wide, *rest)


def _constant(self: Any, value: float) -> Any:
    return self.cast_impl(interpreter.TensorHandle(np.array([value], dtype=np.float32), tl.float32), tl.bfloat16)


_names["_convert_float"] = _converted
interpreter.InterpreterBuilder.get_bf16 = _constant
interpreter.InterpreterBuilder.create_dot = _multiplied
