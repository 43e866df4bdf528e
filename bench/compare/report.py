"""The report of `bench compare`: tables as text, and one HTML file with tables and pictures."""

import base64
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from bench.compare.standing import columns, headline, standing_lines
from bench.plots import NO_PICTURES, Panel, available, diagrams, heat_map, values_of
from bench.record import TEMPERATURES, Cell, Record
from bench.results import Lines, aligned, domain_lines, facts_text, table_cells
from bench.workloads import WORKLOADS

_NOT_SHOWN = ("speedup_median", "draft_acceptance_rate", "other_us_per_token")
_SPEEDUPS = {"speedup": "whole answers", "decode_speedup": "decoding, without the time to the first token"}
_LEGEND = {
    "Who is first": "Tokens of all answers of a column ÷ their time, at each prompt's median repeat. “÷ first”: "
    "knapspec's ÷ the first's, 1 if knapspec is first. “÷ best other”: above 1 if it is. “in repeats”: that ratio's "
    "range over repeats, each of which begins with fresh policies.",
    "workloads": "Domains: the prompts of each domain. Mixed: streams of mix ratio r, the probability that the next "
    "prompt is of another domain (KNN-SSD, eq. 8). Context: prompts after so many tokens of --context-text, which "
    "were read once for all policies. Every workload begins with fresh policies, which keep what they learn until its "
    "end. They take turns of 30 ms, or by prompt if all their caches exceed --kv-cache-memory.",
    "tok/s, ms/tok, speed-up": "Whole answers, prompts included; speed-up is over policy none, in the same turns. "
    "“decode” columns leave out the rounds that read prompts.",
    "ceiling, of ceiling": "E(α, d) / (γf + v), the best speed-up with the measured α, f, v and d, the drafted "
    "tokens of a round, copied ones included; and the share of it that decoding reaches. The share exceeds 100% where "
    "rounds differ much: E of the means is not the mean of E.",
    "α": "Accepted draft tokens ÷ tested ones, copied tokens included.",
    "γ, length": "Draft passes of a round; tokens of a round (M, the mean accepted length).",
    "f, v": "Time of a draft pass and of a verify pass ÷ a plain pass.",
    "skip attn, skip mlp, low-bit": "Share of the attention and MLP sublayers that drafts skip, and share of all "
    "sublayers that they run in fewer bits; means over draft passes.",
    "search, search ms": "Time that the policy takes to decide and to search: share of decoding, and milliseconds.",
    "differ": "Answers that differ from those of none. In float32, greedy answers must not. In 16-bit types, kernels "
    "whose sums depend on the width of a pass may decide a near-tie otherwise.",
}
_STYLE = """
:root { color-scheme: light dark } body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem }
h2 { font-size: 1.15rem } img { max-width: 100% } pre { overflow-x: auto; font-size: 13px }
"""


class Picture(NamedTuple):
    """A PNG, and the name of its file without the ending."""

    name: str
    title: str
    png: bytes


class Table(NamedTuple):
    """A titled table; the first line has the titles of its columns."""

    title: str
    lines: Lines


def draw(record: Record) -> list[Picture]:
    """Draw the pictures for which there are measurements; none without matplotlib."""
    if not available() or not record.policies[1:]:
        return []
    found: list[Picture] = []
    for name, key, scope in (("speedup", "speedup", "whole answers"), ("decode", "decode_speedup", "decoding")):
        title = f"Speed-up of {scope} over none"
        if (png := heat_map(record, title, key)) is not None:
            found.append(Picture(name, title, png))
    over_none = "speed-up of decoding over none"
    for name, title, label, panels in (
        ("context", "Speed-up of decoding by context length", over_none, _curves(record, "context", "context, tokens")),
        ("mixed", "Speed-up of decoding by mix ratio r", over_none, _curves(record, "mixed", "mix ratio r")),
        ("acceptance", "Acceptance by share of skipped sublayers", "α, accepted ÷ tested", _points(record)),
    ):
        if panels:
            found.append(Picture(name, title, diagrams(record, title, panels, label)))
    return found


def _curves(record: Record, column: str, x: str) -> list[Panel]:
    """Return the speed-ups over the value of a column's workloads, a panel for each temperature."""
    panels = []
    for temperature in TEMPERATURES:
        if cells := sorted(record.select(column, temperature.name), key=lambda cell: cell.value or 0):
            at = [cell.value for cell in cells]
            series = {policy: (at, values_of(cells, policy, "decode_speedup")) for policy in record.policies[1:]}
            panels.append(Panel(temperature.name, x, series, log=column == "context", base=1.0))
    return panels


def _points(record: Record) -> list[Panel]:
    """Return α over the share of sublayers that drafts skip, a point for each workload with drafts of the model."""
    panels = []
    for temperature in TEMPERATURES:
        series: dict[str, tuple[list[float], list[float]]] = {}
        for row in (row for cell in record.cells if cell.temperature == temperature.name for row in cell.rows):
            if "skipped_mlp" in row:
                skipped, alpha = series.setdefault(row["policy"], ([], []))
                skipped.append((row["skipped_attention"] + row["skipped_mlp"]) / 2)
                alpha.append(row["alpha"])
        if series:
            panels.append(Panel(temperature.name, "share of sublayers that drafts skip", series, curves=False))
    return panels


def tables(record: Record) -> Iterator[Table]:
    """Yield the tables: who is first, speed-ups, memory, then details."""
    if found := columns(record):
        yield Table("Who is first: tokens per second over all prompts of a column", standing_lines(found))
    for key, scope in _SPEEDUPS.items():
        for temperature in TEMPERATURES:
            if len(lines := _matrix(record, temperature.name, key)) > 1:
                yield Table(f"Speed-up over none: {scope} ({temperature.name})", lines)
    if record.memory:
        title = (
            "Memory that grows from the loaded model to the peak of a short workload, each policy in its own process"
        )
        yield Table(title, [*_memory_lines(record)])
    for temperature in TEMPERATURES:
        cells = [cell for column in WORKLOADS for cell in record.select(column, temperature.name)]
        if rows := [{"workload": cell.workload, **row} for cell in cells for row in cell.rows]:
            yield Table(f"Details ({temperature.name})", table_cells(rows, _NOT_SHOWN))


def _matrix(record: Record, temperature: str, key: str) -> Lines:
    """Return the speed-ups by workload and policy, with mean and minimum of each column of workloads."""
    names, lines = record.policies[1:], [["", *record.policies[1:]]]
    for column in WORKLOADS:
        found = {
            _label(cell): {row["policy"]: row[key] for row in cell.rows if key in row}
            for cell in record.select(column, temperature)
        }
        if names and any(found.values()):
            _, *rest, mean, lowest = domain_lines(found, names)
            lines += [*rest, [f"{column}: mean", *mean[1:]], [f"{column}: lowest", *lowest[1:]]]
    return lines


def _label(cell: Cell) -> str:
    return cell.workload if cell.switches is None else f"{cell.workload} ({cell.switches:.0%} switches)"


def _memory_lines(record: Record) -> Iterator[list[str]]:
    plain = next((row["growth"] for row in record.memory if row["policy"] == "none" and "growth" in row), None)
    yield ["policy", "MB", "over none, MB"]
    for row in record.memory:
        growth = row.get("growth")
        if growth is None:
            yield [row["policy"], f"unknown: {row['error']}", ""]
        else:
            yield [row["policy"], f"{growth / 1e6:.1f}", "" if plain is None else f"{(growth - plain) / 1e6:.1f}"]


def as_text(record: Record) -> str:
    """Return the report without pictures."""
    parts = [
        facts_text(record.machine),
        *statements(record),
        *(f"{table.title}\n{aligned(table.lines)}" for table in tables(record)),
    ]
    return "\n\n".join(filter(None, parts))


def statements(record: Record) -> list[str]:
    """Return what matters most to a reader: knapspec's place, and how many answers differ from those of none."""
    found = [headline(columns(record))]
    for temperature in TEMPERATURES:
        cells = [cell for cell in record.cells if cell.temperature == temperature.name]
        if answers := sum(cell.prompts * len(row["repeats"]) for cell in cells for row in cell.rows[1:]):
            differing = dict.fromkeys(record.policies[1:], 0)
            for row in (row for cell in cells for row in cell.rows[1:]):
                differing[row["policy"]] += row["differing_answers"]
            who = ", ".join(f"{policy} {count}" for policy, count in differing.items() if count)
            found.append(
                f"{sum(differing.values())} of {answers} answers differ from those of none ({temperature.name})"
                + (f": {who}." if who else ".")
            )
    return found


def as_html(record: Record, pictures: Sequence[Picture]) -> str:
    """Return the whole report as one page, which is also well-formed XML and loads nothing."""
    title = escape(f"Draft policies on {record.machine.get('model', '')}")
    first, *rest = [_section(table.title, aligned(table.lines)) for table in tables(record)] or [""]
    body = [f"<h1>{title}</h1>\n<pre>{escape(facts_text(record.machine))}</pre>"]
    body += [f"<p>{escape(statement)}</p>" for statement in statements(record)]
    body.append(first)
    for picture in pictures:
        data, alt = base64.b64encode(picture.png).decode(), escape(picture.title)
        body.append(f'<h2>{alt}</h2>\n<img alt="{alt}" src="data:image/png;base64,{data}" />')
    if not pictures:
        body.append(f"<p>{escape(NO_PICTURES)}</p>")
    body += [*rest, "<h2>How to read this</h2>"]
    body += [f"<p><b>{escape(term)}</b>: {escape(text)}</p>" for term, text in _LEGEND.items()]
    body.append(_section("Settings", facts_text(record.settings)))
    head = f'<meta charset="utf-8" />\n<title>{title}</title>\n<style>{_STYLE}</style>'
    content = "\n".join(body)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{content}\n</body>\n</html>\n'


def _section(title: str, text: str) -> str:
    return f"<h2>{escape(title)}</h2>\n<pre>{escape(text)}</pre>"
