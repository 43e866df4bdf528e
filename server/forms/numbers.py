"""Numbers in JSON schemas, as llguidance holds them: bounds and constants are floats, integers have 64 bits."""

import json
import math
from decimal import Decimal
from typing import Any

_LARGEST = 2**63 - 1024  # the last float that llguidance can also hold as an integer
_STEP = 1e-10  # step of numbers without `multipleOf`; llguidance divides by no finer power of ten
_PRECISION = 1e-14  # relative; llguidance rounds bounds that have more digits
_BOUND_DECIMALS = 6  # most decimals of bounds between which this step leaves enough numbers
_MOST_MULTIPLES = 10_000  # largest `multipleOf`, in units of its last digit; a grammar for 100,000 takes 0.3 s
_BOUNDS = {"minimum": -1, "exclusiveMinimum": -1, "maximum": 1, "exclusiveMaximum": 1}  # keywords and their directions
_ENDS = (("minimum", "exclusiveMinimum", -_LARGEST), ("maximum", "exclusiveMaximum", _LARGEST))


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) != math.inf


def is_usual(schema: dict[str, Any]) -> bool:
    """Whether the numbers that a schema names are among those that `bound_digits` leaves."""
    named: list[Any] = [schema.get(key) for key in (*_BOUNDS, "const")]
    named += schema["enum"] if isinstance(schema.get("enum"), list) else []
    return all(abs(value) <= _LARGEST and round(value, 10) == value for value in named if is_number(value))


def divides(value: float) -> bool:
    """Whether llguidance can enforce this `multipleOf` cheaply."""
    multiples = float(min(value, 2 * _MOST_MULTIPLES))
    while multiples % 1 and multiples <= _MOST_MULTIPLES:  # as llguidance does
        multiples *= 10
    return multiples <= _MOST_MULTIPLES


def is_exact(constant: Any) -> bool:
    """Whether llguidance writes all digits of the integers in a constant."""
    return bool(json.loads(json.dumps(constant), parse_int=_written) == constant)


def _written(digits: str) -> float:
    """Return the integer that llguidance writes for one in a constant: it reads a float."""
    number = int(digits)
    if abs(number) < 2**63:
        return min(int(float(number)), 2**63 - 1)
    return int(Decimal(repr(float(number)))) if abs(number) < 2**1023 else math.inf


def bound_numbers(schema: dict[str, Any], *, whole: bool) -> None:
    """Bring a schema's own bounds within 64 bits. Raises ValueError if that leaves no number.

    An exclusive bound that is whole moves by a step: llguidance's 0 < x < 0.5 allows 0.
    """
    for key, sign in _BOUNDS.items():
        if not is_number(schema.get(key)):
            continue
        if sign * schema[key] < -_LARGEST:
            raise ValueError(f"The schema's '{key}' must be within ±{_LARGEST}.")
        schema[key] = min(_LARGEST, max(-_LARGEST, schema[key]))
        inclusive = key.replace("exclusiveM", "m")
        moved = schema[key] - sign * max(_STEP, abs(schema[key]) * _PRECISION)
        if not whole and inclusive not in schema and schema[key] == int(schema[key]) != moved:
            del schema[key]
            schema[inclusive] = moved


def bound_digits(schema: dict[str, Any], *, step: bool) -> None:
    """Add the bounds that are missing: numbers have at most 19 digits, and with a `step` ten after the point."""
    named = [schema[key] for key in _BOUNDS if is_number(schema.get(key))]
    if step and all(round(bound, _BOUND_DECIMALS) == bound for bound in named):
        schema.setdefault("multipleOf", _STEP)
    for inclusive, exclusive, bound in _ENDS:
        if not is_number(schema.get(inclusive)) and not is_number(schema.get(exclusive)):
            schema[inclusive] = bound
