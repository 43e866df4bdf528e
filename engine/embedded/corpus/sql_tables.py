"""Tables of questions in SQL: drawn columns, their values, and the notations of a schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.embedded.corpus import sql_words as words
from engine.embedded.corpus.base import Draw

TYPES = {"t": "TEXT", "n": "TEXT", "c": "TEXT", "i": "INTEGER", "r": "REAL", "d": "DATE"}
KEYWORDS = frozenset(("like",))  # syllables make them


@dataclass(frozen=True)
class Column:
    """`flavour` is a letter of `TYPES`: how values are made."""

    name: str
    flavour: str

    @property
    def is_text(self) -> bool:
        return self.flavour in "tnc"

    @property
    def is_number(self) -> bool:
        return self.flavour in "ir"


@dataclass(frozen=True)
class Table:
    """`columns` are without the id, which all tables have; `parent` is the table whose rows its `<parent>_id` names."""

    name: str
    columns: tuple[Column, ...]
    parent: str = ""

    @property
    def foreign_key(self) -> str:
        return singular(self.parent) + "_id"

    def all_columns(self) -> list[tuple[str, str]]:
        """Names and SQL types in the order of the schema."""
        link = [(self.foreign_key, "INTEGER")] if self.parent else []
        return [("id", "INTEGER"), *link, *((c.name, TYPES[c.flavour]) for c in self.columns)]


def singular(name: str) -> str:
    if name.endswith("ies") and name != "movies":
        return name[:-3] + "y"
    return name[:-2] if name.endswith(("sses", "xes", "ches", "buses")) else name.removesuffix("s")


def parse_themes() -> dict[str, tuple[Column, ...]]:
    themes = {}
    for line in words.THEMES.strip().splitlines():
        name, _, columns = line.partition(": ")
        themes[name] = tuple(Column(*c.split(":")) for c in columns.split())
    return themes


THEMES = parse_themes()
NAMES = tuple(THEMES)
LINKS = tuple(tuple(pair.split()) for pair in words.LINKS.strip().replace("\n", "|").split("|"))
VALUES = {column: tuple(values.split()) for column, values in words.VALUES.items()}


def made_up_name(draw: Draw) -> str:
    name = draw.made_up_word(draw.integer(2, 3))
    return name + "x" if name in KEYWORDS else name


def some_columns(draw: Draw, name: str) -> tuple[Column, ...]:
    """Columns of a theme, or made up ones (always for a table that is made up)."""
    count = draw.integer(3, 5)
    if name in THEMES and draw.chance(0.85):
        return tuple(draw.sample(THEMES[name], count))
    names: dict[str, Column] = {}
    while len(names) < count:
        column = made_up_name(draw)
        if draw.chance(0.25):
            column += "_" + made_up_name(draw)
        names[column] = Column(column, draw.choice("ttttiiiird"))
    return tuple(names.values())


def table_name(draw: Draw, but: str = "") -> str:
    while True:
        name = draw.choice(NAMES) if draw.chance(0.75) else made_up_name(draw) + draw.choice(("s", "s", ""))
        if name != but:
            return name


def one_table(draw: Draw, name: str = "", parent: str = "") -> Table:
    name = name or table_name(draw)
    return Table(name, some_columns(draw, name), parent)


def linked_tables(draw: Draw) -> tuple[Table, Table]:
    """A child and the parent that it names."""
    child, parent = draw.choice(LINKS) if draw.chance(0.6) else ("", "")
    child = child or table_name(draw)
    parent = parent or table_name(draw, but=child)
    return one_table(draw, child, parent), one_table(draw, parent)


def create_table(table: Table, separator: str, references: bool) -> str:
    columns = [f"{name} {kind}" for name, kind in table.all_columns()]
    columns[0] += " PRIMARY KEY" if references else ""
    if table.parent and references:
        columns[1] += f" REFERENCES {table.parent}(id)"
    opening, closing = ("\n  ", "\n") if separator == ",\n  " else ("", "")
    return f"CREATE TABLE {table.name} ({opening}{separator.join(columns)}{closing});"


def schema(draw: Draw, tables: Sequence[Table]) -> str:
    """The tables in one of several notations."""
    style = draw.integer(0, 9)
    if style < 3:
        references = draw.chance(0.5)
        return "\n".join(create_table(t, (", ", ", ", ",\n  ")[style], references) for t in tables)
    lines = []
    for table in tables:
        names = ", ".join(name for name, _ in table.all_columns())
        typed = ", ".join(f"{name} {kind.lower()}" for name, kind in table.all_columns())
        lines.append(
            (
                f"table {table.name} ({names})",
                f"Table: {table.name}\nColumns: {names}",
                f"{table.name}({names})",
                f"{table.name} ({typed})",
                f"{table.name}: {names}",
                f"Table {table.name} with columns {names}",
                f"The table {table.name} has the columns {names}.",
            )[style - 3]
        )
    child = next((t for t in tables if t.parent), None)
    if child and draw.chance(0.4):
        lines.append(f"{child.name}.{child.foreign_key} = {child.parent}.id")
    return "\n".join(lines)


def text_value(draw: Draw, column: Column) -> str:
    if column.flavour == "n":
        return draw.first_name() + (" " + draw.surname() if draw.chance(0.3) else "")
    if column.flavour == "c":
        return draw.choice(words.CITIES) if draw.chance(0.7) else draw.surname()
    if column.name in VALUES and draw.chance(0.8):
        return draw.choice(VALUES[column.name])
    if draw.chance(0.4):
        return draw.choice(words.TEXTS)
    word = draw.made_up_word(draw.integer(2, 3))
    return word.capitalize() if draw.chance(0.5) else word


def number_value(draw: Draw, column: Column) -> int:
    if column.name in words.RANGES:
        return draw.integer(*words.RANGES[column.name])
    low, high, step = draw.choice(((1, 20, 1), (10, 100, 1), (100, 999, 1), (1, 20, 50), (2, 18, 500), (1, 90, 1000)))
    return draw.integer(low, high) * step


def number_literal(draw: Draw, column: Column) -> str:
    number = number_value(draw, column)
    return f"{number}.{draw.integer(1, 9)}" if column.flavour == "r" and draw.chance(0.4) else str(number)


def date_value(draw: Draw) -> str:
    return f"{draw.integer(1995, 2026)}-{draw.integer(1, 12):02}-{draw.integer(1, 28):02}"
