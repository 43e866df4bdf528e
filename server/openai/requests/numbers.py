"""Numbers in JSON schemas, as llguidance holds them: bounds and constants are floats, integers have 64 bits."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

_LARGEST = 2**63 - 1024  # the last float that llguidance can also hold as an integer
_FINEST = 1e-10  # step of numbers without `multipleOf`; llguidance divides by no finer power of ten
_SHORTEST_RANGE = 1e-6  # of numbers that get this step
_FINER = 1e-15  # distance of numbers from an exclusive bound in shorter ranges; llguidance compares 19 decimals
_LARGEST_MOVED = 1e9  # exclusive bound that such a distance replaces
_MOST_STEPS = 10_000  # of `multipleOf`, in units of its last digit; a grammar for 100,000 takes 0.3 s
_MOST = 9_200_000_000_000_000_000  # the bound of numbers without one; its text in llguidance is exact
ANY_NUMBER = {"type": "number", "minimum": -_MOST, "maximum": _MOST, "multipleOf": _FINEST}


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, float) and math.isfinite(value)
    )


def is_small(schema: dict[str, Any]) -> bool:
    """Whether the numbers that a schema names itself are within the bounds of numbers without any."""
    named: list[Any] = [
        schema.get(name) for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const")
    ]
    named += schema["enum"] if isinstance(schema.get("enum"), list) else []
    return all(abs(value) < _MOST and round(value, 10) == value for value in named if is_number(value))


def divides(value: float) -> bool:
    """Whether llguidance can enforce this `multipleOf` cheaply."""
    steps = float(min(value, 2 * _MOST_STEPS))
    while steps % 1 and steps <= _MOST_STEPS:  # as llguidance does
        steps *= 10
    return steps <= _MOST_STEPS


def bound_numbers(schema: dict[str, Any], *, whole: bool, fill: bool, fine: bool) -> None:
    """Write a schema's bounds so that no rounding allows a number beyond them. With `fill`, add those that are missing.

    The added ones leave numbers 19 digits, and ten after the point if `fine`. Raises ValueError if a bound cannot be
    enforced.
    """
    low, high = _bound(schema, -1, whole, fill), _bound(schema, 1, whole, fill)
    if low > high and max(-low, high) >= 2**53:
        raise ValueError("No number within the schema's 'minimum' and 'maximum' can be enforced exactly.")
    short = high - low < _SHORTEST_RANGE
    if fill and fine and not whole and not short:
        schema.setdefault("multipleOf", _FINEST)
    for sign, inclusive, exclusive in ((-1, "minimum", "exclusiveMinimum"), (1, "maximum", "exclusiveMaximum")):
        bound = schema.get(exclusive, math.inf)
        if abs(bound) < _LARGEST_MOVED and bound == int(bound):  # llguidance's 1 < x < 1.5 allows 1, but not 1.0
            step = max(_FINER if short else _FINEST, abs(bound) * 1e-14)
            schema[inclusive] = schema.pop(exclusive) - sign * step


def _bound(schema: dict[str, Any], sign: int, whole: bool, fill: bool) -> float:
    """Write the upper bound for the `sign` 1, else the lower one, and return it."""
    inclusive, exclusive = ("maximum", "exclusiveMaximum") if sign > 0 else ("minimum", "exclusiveMinimum")
    closed, open = schema.pop(inclusive, None), schema.pop(exclusive, None)
    if open is True:  # JSON Schema's draft 4
        closed, open = None, closed
    bounds = [] if closed is None else [(sign * closed, True)]
    bounds += [] if open is None or open is False else [(sign * open, False)]
    if not bounds and not fill:
        return sign * math.inf
    bound, included = min(bounds, default=(_MOST, True))
    if whole:
        bound, included = (math.floor(bound) if included else math.ceil(bound) - 1), True
    if bound < -_LARGEST:
        raise ValueError(f"The schema's '{inclusive}' must be within ±{_LARGEST}.")
    bound = min(bound, _LARGEST)
    if abs(bound) >= 2**53:  # beyond, floats skip integers
        written = float(bound)
        while written > bound or (
            not whole and Decimal(repr(written)) > int(bound)
        ):  # llguidance writes it like `repr`
            written = math.nextafter(written, -math.inf)
        bound = int(written)
    schema[inclusive if included else exclusive] = sign * bound
    return float(sign * bound)


def constant(value: Any) -> Any:
    """Return a constant as llguidance must read it to write this one. Raises ValueError for too many digits."""
    if isinstance(value, dict):
        return {name: constant(item) for name, item in value.items()}
    if isinstance(value, list):
        return [constant(item) for item in value]
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return value
    if isinstance(value, int) and (value == 2**63 - 1 or (abs(value) < 2**63 and int(float(value)) == value)):
        return value
    if abs(value) < 2**1023 and Decimal(repr(float(value))) == Decimal(repr(value)):
        for near in (float(value), math.nextafter(value, math.inf), math.nextafter(value, -math.inf)):
            if _read(near) == value:
                return near
    raise ValueError(f"The number {value} in the schema has too many digits for a grammar. A string can hold it.")


def _read(value: float) -> float:
    """Return the number that llguidance reads in a number's text (serde_json without its `float_roundtrip`)."""
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    number, scale = float(int("".join(map(str, digits)))), float(f"1e{abs(int(exponent))}")
    return (-1.0 if sign else 1.0) * (number * scale if int(exponent) >= 0 else number / scale)
