"""Random changes of JSON values and of bytes."""

from __future__ import annotations

import string
from random import Random
from typing import Any

_HUGE = 10**399 + 7
ODD: list[Any] = [
    *(None, True, 0, 1, -1, 2**31, 2**63, -(2**63), 2**64, _HUGE, -_HUGE, 0.5, 1e-320, 1e308, float("nan")),
    *("", "x", "a" * 3000, "é\u0000\ud7ff\U0001f98a", "\ud800", "((a+)+)+$", "re:(", "<|im_end|>", "../x", "{{", "1"),
    *([], {}, [[]], [None], {"": ""}, [0] * 300),
]  # fmt: skip


def mutated(value: Any, draw: Random, odd: list[Any] = ODD) -> Any:
    """Change one place of a JSON value. `odd`: values that may stand anywhere."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice([*value])
        action = draw.random()
        if action < 0.1:
            return {name: inner for name, inner in value.items() if name != key}
        if action < 0.2:
            return value | {draw.choice([*value, "extra", "", "é"]) + draw.choice(["", "_"]): draw.choice(odd)}
        return value | {key: mutated(value[key], draw, odd)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        at = draw.randrange(len(value))
        return [*value[:at], mutated(value[at], draw, odd), *value[at + 1 :], *(value if draw.random() < 0.1 else ())]
    if isinstance(value, str) and draw.random() < 0.4:
        at = draw.randrange(len(value) + 1)
        return value[:at] + draw.choice([*string.printable, "\u2028", "<|im_start|>", value]) + value[at:]
    if isinstance(value, int | float) and draw.random() < 0.4:
        return draw.choice([value + 1, -value, value * 1000])
    return draw.choice(odd)


def damaged(content: bytes, draw: Random) -> bytes:
    """Change, insert or delete a few bytes, or cut the end."""
    for _ in range(draw.choice((1, 1, 3))):
        at = draw.randrange(len(content) + 1)
        put = bytes([draw.choice((0, 9, 34, 91, 123, 127, 255, draw.randrange(256)))]) * draw.choice((0, 1, 2, 8))
        content = content[:at] + put + content[at + draw.choice((0, len(put), 4, 100)) :]
    return content if draw.random() < 0.9 else content[: draw.randrange(len(content) + 1)]
