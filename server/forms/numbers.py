"""Numbers in JSON schemas, as llguidance holds them: bounds and constants are floats, integers have 64 bits."""

import math
from typing import Any

from server.forms.references import inside

_LARGEST = 2**63 - 1024  # the last float that llguidance can also hold as an integer
_LARGEST_EXACT = 2**53  # up to here, every integer is a float
_STEP = 1e-10  # step of numbers without `multipleOf`; llguidance divides by no finer power of ten
_PRECISION = 1e-14  # relative precision of bounds: llguidance rounds further digits
_BOUND_DECIMALS = 6  # most decimals of bounds between which this step leaves enough numbers
_MOST_MULTIPLES = 10_000  # in units of the last digit of `multipleOf`; a grammar for 100,000 takes 0.3 s
_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


def is_number(value: object) -> bool:
    """Whether a JSON value is a finite number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) != math.inf


def divides(value: float) -> bool:
    """Whether llguidance can enforce this `multipleOf` cheaply."""
    multiples = float(min(value, 2 * _MOST_MULTIPLES))
    while multiples % 1 and multiples <= _MOST_MULTIPLES:  # as llguidance does
        multiples *= 10
    return multiples <= _MOST_MULTIPLES


def is_exact(constant: Any) -> bool:
    """Whether llguidance, which reads floats, writes all digits of the integers in a constant."""
    if isinstance(constant, int):
        return abs(constant) <= _LARGEST_EXACT
    return all(map(is_exact, inside(constant)))


def bound_numbers(schema: dict[str, Any], *, digits: bool, step: bool) -> None:
    """Make a schema's bounds inclusive, as llguidance's 0 < x < 0.5 allows 0, and within 64 bits.

    With `digits`, numbers get at most 19 digits; with a `step`, at most ten after the point. Raises ValueError if the
    bounds leave no number.
    """
    named = [schema[key] for key in _BOUNDS if is_number(schema.get(key))]
    if step and all(round(bound, _BOUND_DECIMALS) == bound for bound in named):
        schema.setdefault("multipleOf", _STEP)
    least, most = _inclusive(schema, "minimum", inward=1), _inclusive(schema, "maximum", inward=-1)
    if least > _LARGEST or most < -_LARGEST:
        raise ValueError(f"The schema's 'minimum' and 'maximum' must be within ±{_LARGEST}.")
    if digits or least > -math.inf:
        schema["minimum"] = max(least, -_LARGEST)
    if digits or most < math.inf:
        schema["maximum"] = min(most, _LARGEST)


def _inclusive(schema: dict[str, Any], keyword: str, *, inward: int) -> float:
    """Remove `minimum` or `maximum` and its exclusive twin, and return the tighter one as an inclusive bound.

    `inward` is the sign of the direction from the bound to the numbers within. Without a bound, the result is infinite.
    """
    inclusive, exclusive = schema.pop(keyword, None), schema.pop(f"exclusiveM{keyword[1:]}", None)
    if exclusive is True:  # as draft 4 writes it
        inclusive, exclusive = None, inclusive
    bounds: list[float] = [-inward * math.inf]
    if is_number(inclusive):
        bounds.append(inclusive)
    if is_number(exclusive):
        nearest = min(max(exclusive, -_LARGEST), _LARGEST)
        bounds.append(nearest + inward * max(_STEP, abs(nearest) * _PRECISION))
    return max(bounds) if inward > 0 else min(bounds)
