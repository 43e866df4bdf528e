"""Which policy is first in each column of `bench compare`, and how knapspec stands in relation to it."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from bench.plots import OURS
from bench.record import TEMPERATURES, Cell, Record
from bench.results import Lines
from bench.targets import sum_batches
from bench.workloads import WORKLOADS

_NEAR = 0.97  # "within 3 % of the first", the bar that knapspec is held to

Speeds = dict[str, float]  # tokens per second by policy


class Column(NamedTuple):
    """All prompts of all domains, of one mixed stream, or after one context, at one temperature."""

    name: str
    temperature: str
    answers: Speeds  # of whole answers
    decode: Speeds  # of decoding alone; empty if no answer has two tokens
    repeats: list[Speeds]  # of whole answers, in each repeat
    reading: dict[str, float]  # seconds that are not of decoding: nearly the same work for all policies

    @property
    def in_repeats(self) -> list[float]:
        """Knapspec's ratio to the best other policy in each repeat."""
        return [ratio for speeds in self.repeats if (ratio := _ratio(speeds, to_itself=False)) is not None]


def columns(record: Record) -> list[Column]:
    """Return the columns that are measured. The domains are one column together."""
    found: list[Column] = []
    for temperature in TEMPERATURES:
        for kind in WORKLOADS:
            cells = record.select(kind, temperature.name)
            if kind == "domains" and cells:
                found.append(_column(f"{len(cells)} domains", cells, record.policies))
            elif cells:
                found += [_column(f"{kind}, {cell.workload}", [cell], record.policies) for cell in cells]
    return found


def _column(name: str, cells: list[Cell], policies: list[str]) -> Column:
    rows = {policy: [row for cell in cells for row in cell.rows if row["policy"] == policy] for policy in policies}
    totals = {policy: sum_batches(row["total"] for row in own) for policy, own in rows.items()}
    repeats = [
        {policy: sum_batches(row["repeats"][number] for row in own).speed for policy, own in rows.items()}
        for number in range(min(len(row["repeats"]) for row in rows[policies[0]]))
    ]
    return Column(
        name,
        cells[0].temperature,
        answers={policy: total.speed for policy, total in totals.items()},
        decode={policy: total.decode_speed for policy, total in totals.items() if total.decode_tokens},
        repeats=repeats,
        reading={policy: total.seconds - total.decode_seconds for policy, total in totals.items()},
    )


def _ratio(speeds: Speeds, to_itself: bool = True) -> float | None:
    """Return knapspec's speed ÷ that of the fastest policy, perhaps `to_itself`; None if there are not both."""
    compared = [speed for policy, speed in speeds.items() if policy != OURS or to_itself]
    return speeds[OURS] / max(compared) if OURS in speeds and compared else None


def headline(found: Sequence[Column]) -> str:
    """Say in how many columns knapspec is first or near, where it is furthest behind, and how far repeats vary.

    Returns "" if knapspec was not measured.
    """
    ratios = [ratio for column in found if (ratio := _ratio(column.answers)) is not None]
    if not ratios:
        return ""
    decode = [ratio for column in found if (ratio := _ratio(column.decode)) is not None]
    worst = found[ratios.index(min(ratios))]
    lines = [
        f"{OURS} is first or within {1 - _NEAR:.0%} of the first in {_near(ratios)} columns by tokens/s "
        f"of whole answers, and in {_near(decode)} by tokens/s of decoding.",
        f"Lowest ratio of whole answers: {min(ratios):.2f} of {_first(worst.answers)[0]} "
        f"({worst.name}, {worst.temperature}).",
    ]
    spreads = [max(column.in_repeats) / min(column.in_repeats) - 1 for column in found if len(column.in_repeats) > 1]
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


def _near(ratios: Sequence[float]) -> str:
    return f"{sum(ratio >= _NEAR for ratio in ratios)} of {len(ratios)}"


def standing_lines(found: Sequence[Column]) -> Lines:
    """Return the lines of a table: in each column, the first policy and knapspec's ratio to it. Titles come first."""
    ours = any(OURS in column.answers for column in found)
    repeats = ours and any(len(column.repeats) > 1 for column in found)
    own = [OURS, "÷ first"] if ours else []
    titles = ["column", "sampling", "first", "tok/s", *own]
    titles += [f"within {1 - _NEAR:.0%}", "÷ best other"] if ours else []
    titles += ["in repeats"] if repeats else []
    lines = [[*titles, "decode: first", "tok/s", *own]]
    for column in found:
        line = [column.name, column.temperature, *_first(column.answers)]
        if ours:
            ratio = _ratio(column.answers)
            near = "" if ratio is None else ("no", "yes")[ratio >= _NEAR]
            line += [*_own(column.answers), near, _shown(_ratio(column.answers, to_itself=False))]
        if repeats:
            ratios = column.in_repeats
            line.append(f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "")
        lines.append([*line, *_first(column.decode), *(_own(column.decode) if ours else [])])
    return lines


def _first(speeds: Speeds) -> list[str]:
    """Return the fastest policy and its speed."""
    if not speeds:
        return ["", ""]
    first = max(speeds, key=speeds.__getitem__)
    return [first, f"{speeds[first]:.1f}"]


def _own(speeds: Speeds) -> list[str]:
    return [f"{speeds[OURS]:.1f}" if OURS in speeds else "", _shown(_ratio(speeds))]


def _shown(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
