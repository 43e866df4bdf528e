"""The tables of `bench compare` and `bench paper`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bench.measurements import Totals
from bench.record import TEMPERATURES, Cell, Record
from bench.results import Column, Row, summarise, table
from bench.workloads import WORKLOADS

_SPEEDUPS = {"speedup": "whole answers", "decode_speedup": "decoding, without the time to the first token"}


def sum_rows(cells: Sequence[Cell]) -> list[Row]:
    """Return a row for each policy over several cells, of the sums of their counts."""
    totals: dict[str, Totals] = {}
    differing: dict[str, int] = {}
    for row in (row for cell in cells for row in cell.rows):
        name = row["policy"]
        totals[name] = totals.get(name, Totals()) + Totals.from_json(row["totals"])
        differing[name] = differing.get(name, 0) + row["differing_answers"]
    plain = next(iter(totals.values()))
    return [summarise(name, each, plain) | {"differing_answers": differing[name]} for name, each in totals.items()]


def summary(record: Record) -> str:
    """Return a table with a line for each policy over all cells."""
    return table(sum_rows(record.cells))


def details(record: Record) -> str:
    """Return a table with a line for each policy on each workload, and over all domains."""
    return table([{"workload": name} | row for name, rows in _groups(record.cells) for row in rows])


def _groups(cells: Sequence[Cell]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the name and rows of each workload, and of all domains together after the last one."""
    for column in WORKLOADS:
        own = [cell for cell in cells if cell.column == column]
        for cell in own:
            yield cell.workload, cell.rows
        if column == "domains" and len(own) > 1:
            yield "all domains", sum_rows(own)


def comparison(record: Record) -> str:
    """Return the tables of `bench compare`: speed-ups by workload and policy, then all figures."""
    parts = [facts_text(record)]
    for temperature in TEMPERATURES:
        own = replace(record, cells=[cell for cell in record.cells if cell.temperature == temperature.name])
        for key, scope in _SPEEDUPS.items():
            parts.append(f"Speed-up over none: {scope} ({temperature.name})\n{_speedups(own, key)}")
        parts.append(f"All figures ({temperature.name})\n{details(own)}")
    return "\n\n".join(parts)


def _speedups(record: Record, key: str) -> str:
    """Return a table of speed-ups: workloads down, policies across, then the first policy."""
    rows: list[Row] = []
    for name, own in _groups(record.cells):
        speedups = {row["policy"]: row[key] for row in own if key in row}
        rows.append({"workload": name, "first": max(speedups, key=speedups.__getitem__, default="")} | speedups)
    policies = [Column(policy, policy) for policy in record.policies[1:]]
    return table(rows, [Column("", "workload", "{}"), *policies, Column("first", "first", "{}")])


def facts_text(record: Record) -> str:
    """Return the facts about model and machine, a line each."""
    return "\n".join(f"{name}: {value}" for name, value in record.machine.items())
