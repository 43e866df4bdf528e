"""Which policy is first in each column of `bench compare`, and how knapspec stands in relation to it."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bench.compare.record import TEMPERATURES, Cell, Record
from bench.compare.workloads import WORKLOADS
from bench.targets import BatchTotals, sum_batches

OURS = "knapspec"
_NEAR = 0.97  # "within 3 % of the first", the bar that knapspec is held to


class Column(NamedTuple):
    """All prompts of all domains, of one mixed stream, or after one context, at one temperature."""

    name: str
    temperature: str
    answers: dict[str, float]  # tokens per second of whole answers, by policy
    decode: dict[str, float]  # the same of decoding alone; empty if no answer has two tokens
    repeats: list[dict[str, float]]  # those of whole answers, in each repeat
    reading: dict[str, float]  # seconds that are not of decoding: nearly the same work for all policies


def columns(record: Record) -> list[Column]:
    """Return the columns that are measured. The domains are one column together."""
    found: list[Column] = []
    for temperature in TEMPERATURES:
        for kind in WORKLOADS:
            cells = [cell for cell in record.cells if (cell.column, cell.temperature) == (kind, temperature.name)]
            if kind == "domains" and cells:
                found.append(_column(f"{len(cells)} domains", cells, record.policies))
            elif cells:
                found += [_column(f"{kind}, {cell.workload}", [cell], record.policies) for cell in cells]
    return found


def _column(name: str, cells: list[Cell], policies: list[str]) -> Column:
    rows = {policy: [row for cell in cells for row in cell.rows if row["policy"] == policy] for policy in policies}
    totals = {policy: sum_batches(row["total"] for row in own) for policy, own in rows.items()}
    count = min(len(row["repeats"]) for row in rows[policies[0]])
    repeats = [
        {policy: _speed(sum_batches(row["repeats"][number] for row in own)) for policy, own in rows.items()}
        for number in range(count)
    ]
    return Column(
        name,
        cells[0].temperature,
        {policy: _speed(total) for policy, total in totals.items()},
        {policy: t.decode_tokens / t.decode_seconds for policy, t in totals.items() if t.decode_tokens},
        repeats,
        {policy: total.seconds - total.decode_seconds for policy, total in totals.items()},
    )


def _speed(total: BatchTotals) -> float:
    return total.tokens / total.seconds


def _ratio_to_first(speeds: Mapping[str, float]) -> float | None:
    """Return knapspec's speed ÷ that of the first, 1 if it is the first itself, or None if it was not measured."""
    return speeds[OURS] / max(speeds.values()) if OURS in speeds else None


def _ratio_to_best_other(speeds: Mapping[str, float]) -> float | None:
    """Return knapspec's speed ÷ that of the best other policy: above 1 if knapspec is first."""
    others = [speed for policy, speed in speeds.items() if policy != OURS]
    return speeds[OURS] / max(others) if OURS in speeds and others else None


def headline(found: Sequence[Column]) -> str:
    """Say in how many columns knapspec is first or near, where it is furthest behind, and how far repeats vary.

    Returns "" if knapspec was not measured.
    """
    ratios = [(ratio, column) for column in found if (ratio := _ratio_to_first(column.answers)) is not None]
    if not ratios:
        return ""
    decode = [ratio for column in found if (ratio := _ratio_to_first(column.decode)) is not None]
    lowest, worst = min(ratios, key=lambda pair: pair[0])
    first = max(worst.answers, key=worst.answers.__getitem__)
    lines = [
        f"{OURS} is first or within {1 - _NEAR:.0%} of the first in {_near(r for r, _ in ratios)} columns by tokens/s "
        f"of whole answers, and in {_near(decode)} by tokens/s of decoding.",
        f"Lowest ratio of whole answers: {lowest:.2f} of {first} ({worst.name}, {worst.temperature}).",
    ]
    spreads = [spread for column in found if (spread := _spread(column)) is not None]
    if spreads:
        lines.append(
            f"Repeats: the ratio of {OURS} to the best other policy varies by {statistics.median(spreads):.1%} within "
            f"a column (median; at most {max(spreads):.1%})."
        )
    else:
        reading = [max(column.reading.values()) / min(column.reading.values()) - 1 for column in found]
        lines.append(
            "Each prompt was measured once; --repeat 3 shows how far repeats vary. A hint: the reading of prompts, "
            f"nearly the same work for all policies, differs between them by {statistics.median(reading):.0%} (median "
            f"of the columns; at most {max(reading):.0%})."
        )
    return "\n".join(lines)


def _near(ratios: Iterable[float]) -> str:
    known = list(ratios)
    return f"{sum(ratio >= _NEAR for ratio in known)} of {len(known)}"


def _in_repeats(column: Column) -> list[float]:
    """Return the ratio of knapspec to the best other policy in each repeat."""
    return [ratio for speeds in column.repeats if (ratio := _ratio_to_best_other(speeds)) is not None]


def _spread(column: Column) -> float | None:
    """Return the largest ÷ the smallest ratio of the repeats, less 1; None without two of them."""
    ratios = _in_repeats(column)
    return max(ratios) / min(ratios) - 1 if len(ratios) > 1 else None


def standing_lines(found: Sequence[Column]) -> list[list[str]]:
    """Return the lines of a table: in each column, the first policy and knapspec's ratio to it. Titles come first."""
    ours = any(OURS in column.answers for column in found)
    repeats = ours and any(len(column.repeats) > 1 for column in found)
    titles = ["column", "sampling", "first", "tok/s"]
    titles += [OURS, "÷ first", f"within {1 - _NEAR:.0%}", "÷ best other"] if ours else []
    titles += ["in repeats"] if repeats else []
    titles += ["decode: first", "tok/s"] + ([OURS, "÷ first"] if ours else [])
    lines = [titles]
    for column in found:
        line = [column.name, column.temperature, *_first(column.answers)]
        if ours:
            ratio = _ratio_to_first(column.answers)
            line += [*_own(column.answers), "" if ratio is None else "yes" if ratio >= _NEAR else "no"]
            line.append(_ratio(_ratio_to_best_other(column.answers)))
        if repeats:
            ratios = _in_repeats(column)
            line.append(f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "")
        line += [*_first(column.decode), *(_own(column.decode) if ours else [])]
        lines.append(line)
    return lines


def _first(speeds: Mapping[str, float]) -> list[str]:
    if not speeds:
        return ["", ""]
    first = max(speeds, key=speeds.__getitem__)
    return [first, f"{speeds[first]:.1f}"]


def _own(speeds: Mapping[str, float]) -> list[str]:
    return [f"{speeds[OURS]:.1f}" if OURS in speeds else "", _ratio(_ratio_to_first(speeds))]


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
