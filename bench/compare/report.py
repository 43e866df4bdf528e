"""The report of `bench compare`: tables as text, and one HTML file with tables and pictures."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from bench.compare.record import TEMPERATURES, Record
from bench.compare.standing import columns, headline, standing_lines
from bench.compare.workloads import WORKLOADS
from bench.results import aligned, domain_lines, table_cells

_NOT_SHOWN = ("speedup_median", "draft_acceptance_rate", "other_us_per_token")
_SPEEDUPS = {"speedup": "whole answers", "decode_speedup": "decoding, without the time to the first token"}
NO_PICTURES = "There are no pictures: they need matplotlib, which pip install 'knapserve[plots]' installs."
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
:root { color-scheme: light dark; --text: #1c2430; --dim: #4a5565; --rule: #e3e7ed; --head: #c3cad4; --hover: #f3f6fa }
@media (prefers-color-scheme: dark) {
:root { --text: #dfe5ee; --dim: #a5b0c0; --rule: #2e3845; --head: #4a5565; --hover: #1d2530; background: #12171e }
img { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); max-width: 88rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: 0 } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem }
p { margin: .3rem 0; color: var(--dim) } p.first { color: inherit; font-size: 1.05rem }
p:first-of-type { font-weight: 600; margin-top: 1.2rem }
img { max-width: 100% } div { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule) }
th { color: var(--dim); font-weight: 600; border-bottom: 2px solid var(--head) }
tr:hover td { background: var(--hover) }
th:first-child, td:first-child { text-align: left }
dt { font-weight: 600; margin-top: .6rem } dd { margin: 0; color: var(--dim) }
"""


class Picture(NamedTuple):
    """A PNG, and the name of its file without the ending."""

    name: str
    title: str
    png: bytes


class Table(NamedTuple):
    """A titled table; the first line has the titles of its columns."""

    title: str
    lines: list[list[str]]


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
        rows = [
            {"workload": cell.workload, **row}
            for column in WORKLOADS
            for cell in record.cells
            if (cell.column, cell.temperature) == (column, temperature.name)
            for row in cell.rows
        ]
        if rows:
            yield Table(f"Details ({temperature.name})", table_cells(rows, _NOT_SHOWN))


def _matrix(record: Record, temperature: str, key: str) -> list[list[str]]:
    """Return the speed-ups by workload and policy, with mean and minimum of each column of workloads."""
    names, lines = record.policies[1:], [["", *record.policies[1:]]]
    for column in WORKLOADS:
        found = {
            _label(cell.workload, cell.switches): {row["policy"]: row[key] for row in cell.rows if key in row}
            for cell in record.cells
            if (cell.column, cell.temperature) == (column, temperature)
        }
        if names and any(found.values()):
            _, *rest, mean, lowest = domain_lines(found, names)
            lines += [*rest, [f"{column}: mean", *mean[1:]], [f"{column}: lowest", *lowest[1:]]]
    return lines


def _label(workload: str, switches: float | None) -> str:
    return workload if switches is None else f"{workload} ({switches:.0%} switches)"


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
    facts = "\n".join(f"{name}: {value}" for name, value in record.machine.items())
    parts = [facts, *statements(record), *(f"{table.title}\n{aligned(table.lines)}" for table in tables(record))]
    return "\n\n".join(filter(None, parts))


def statements(record: Record) -> list[str]:
    """Return what matters most to a reader: knapspec's place, and how many answers differ from those of none."""
    found = [headline(columns(record))]
    for temperature in TEMPERATURES:
        cells = [cell for cell in record.cells if cell.temperature == temperature.name]
        rows = [row for cell in cells for row in cell.rows if row["policy"] != record.policies[0]]
        answers = sum(cell.prompts * len(row["repeats"]) for cell in cells for row in cell.rows[1:])
        differing = {
            policy: count
            for policy in record.policies[1:]
            if (count := sum(row["differing_answers"] for row in rows if row["policy"] == policy))
        }
        if answers:
            who = ", ".join(f"{policy} {count}" for policy, count in differing.items())
            found.append(
                f"{sum(differing.values())} of {answers} answers differ from those of none ({temperature.name})"
                + (f": {who}." if who else ".")
            )
    return found


def as_html(record: Record, pictures: Sequence[Picture]) -> str:
    """Return the whole report as one page, which is also well-formed XML and loads nothing."""
    title = escape(f"Draft policies on {record.machine.get('model', '')}")
    facts = [[name, str(value)] for name, value in record.machine.items()]
    settings = [[name, str(value)] for name, value in record.settings.items()]
    first, *rest = [f"<h2>{escape(table.title)}</h2>\n{_html_table(table.lines)}" for table in tables(record)] or [""]
    body = [f"<h1>{title}</h1>", _html_table([["", ""], *facts])]
    body += [f'<p class="first">{escape(line)}</p>' for line in "\n".join(statements(record)).splitlines() if line]
    body.append(first)
    for picture in pictures:
        data = base64.b64encode(picture.png).decode()
        alt = escape(picture.title)
        body.append(f'<h2>{alt}</h2>\n<div><img alt="{alt}" src="data:image/png;base64,{data}" /></div>')
    if not pictures:
        body.append(f"<p>{escape(NO_PICTURES)}</p>")
    body += rest
    body.append(f"<h2>How to read this</h2>\n{_html_list(_LEGEND)}")
    body.append(f"<h2>Settings</h2>\n{_html_table([['', ''], *settings])}")
    head = f'<meta charset="utf-8" />\n<title>{title}</title>\n<style>{_STYLE}</style>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{chr(10).join(body)}\n</body>\n</html>\n'
    )


def _html_table(lines: Sequence[Sequence[str]]) -> str:
    """Format lines of cells; the first line has the titles, and is left out if it is empty."""
    head, *rest = lines
    rows = [_html_row(line, "td") for line in rest]
    if any(head):
        rows.insert(0, _html_row(head, "th"))
    return "<div><table>\n" + "\n".join(rows) + "\n</table></div>"


def _html_row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _html_list(entries: Mapping[str, str]) -> str:
    return (
        "<dl>"
        + "\n".join(f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>" for term, text in entries.items())
        + "</dl>"
    )
