"""The corpus's SQL, run by sqlite, gives the rows that an evaluation of its query in Python gives."""

from __future__ import annotations

import re
import sqlite3
from random import Random
from typing import Any

import pytest

from engine.embedded.corpus import sql
from engine.embedded.corpus.base import Draw, Split
from engine.embedded.corpus.sql_tables import Table


def literals(query: sql.Query) -> list[str]:
    return [value.strip("'%") for condition in query.where for value in condition.values]


def cell(random: Random, kind: str, wanted: list[str]) -> str | float:
    """A value that the query's conditions name, if it suits the column, or another."""
    if kind in ("TEXT", "DATE"):
        others = ["stone", "Paris", "Stella"] if kind == "TEXT" else ["2020-05-17", "1999-12-31"]
        return random.choice([w for w in wanted if (kind == "DATE") == bool(re.match(r"\d{4}-", w))] + others)
    return random.choice([float(w) for w in wanted if re.fullmatch(r"[\d.]+", w)] + [random.randint(1, 90) * 10.0])


def holds(condition: sql.Condition, value: Any) -> bool:
    low, *high = [v.strip("'") if "'" in v else float(v) for v in condition.values]
    if condition.operator == "LIKE":
        assert isinstance(low, str)
        return bool(re.fullmatch(low.replace("%", ".*"), value, re.IGNORECASE))
    return {
        "=": lambda: value == low,
        "<>": lambda: value != low,
        ">": lambda: value > low,
        "<": lambda: value < low,
        ">=": lambda: value >= low,
        "<=": lambda: value <= low,
        "BETWEEN": lambda: low <= value <= high[0],
    }[condition.operator]()


def value_of(select: str, rows: list[dict[str, Any]]) -> Any:
    """One selected expression over a group of rows."""
    if select == "COUNT(*)":
        return len(rows)
    if not (call := re.fullmatch(r"(\w+)\((DISTINCT )?(\w+)\)", select)):
        return rows[0][select]
    values = [row[call[3]] for row in rows]
    if call[1] == "COUNT":
        return len(set(values))
    mean = sum(values) / len(values) if values and call[1] == "AVG" else None
    return {"SUM": sum, "MIN": min, "MAX": max, "AVG": lambda _: mean}[call[1]](values) if values else None


def expected(query: sql.Query, rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """All rows that the query gives, without its order and limit."""
    every = all if query.connective == "AND" else any
    rows = [r for r in rows if not query.where or every(holds(c, r[c.column]) for c in query.where)]
    if query.group:
        groups = [[r for r in rows if r[query.group] == name] for name in {r[query.group] for r in rows}]
    else:
        groups = [rows] if "(" in query.select[0] else [[r] for r in rows]
    if query.select == ("*",):
        return [tuple(row.values()) for row in rows]
    result = [tuple(value_of(s, group) for s in query.select) for group in groups]
    return list(set(result)) if query.distinct else result


def comparable(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(repr([v if v is None or isinstance(v, str) else round(float(v), 6) for v in row]) for row in rows)


def filled(random: Random, database: sqlite3.Connection, table: Table, query: sql.Query) -> list[dict[str, Any]]:
    columns = table.all_columns()
    database.execute(f"CREATE TABLE {table.name} ({', '.join(f'{name} {kind}' for name, kind in columns)})")
    rows = []
    for i in range(12):
        row = {name: cell(random, kind, literals(query)) for name, kind in columns} | {"id": i + 1}
        if table.parent:
            row[table.foreign_key] = random.randint(1, 15)
        database.execute(f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(row))})", tuple(row.values()))
        rows.append(row)
    return rows


@pytest.mark.parametrize("split", ["train", "held_out"])
def test_sql_gives_the_rows_of_its_query(split: Split) -> None:
    for seed in range(400):
        question, query, tables = sql.draw_question(Draw(seed, split))
        random, database = Random(seed), sqlite3.connect(":memory:")
        rows = {table.name: filled(random, database, table, query) for table in tables}
        source = rows[query.table]
        if query.join:
            child, parent = sorted(tables, key=lambda t: t.name != query.table)
            named = {t.name: [{f"{t.name}.{k}": v for k, v in r.items()} for r in rows[t.name]] for t in tables}
            key, other = f"{child.name}.{child.foreign_key}", f"{parent.name}.id"
            source = [c | p for c in named[child.name] for p in named[parent.name] if c[key] == p[other]]
        got = database.execute(query.sql).fetchall()
        database.close()
        wanted = expected(query, source)
        if query.limit:
            assert len(got) == min(query.limit, len(wanted))
            assert set(comparable(got)) <= set(comparable(wanted))
        else:
            assert comparable(got) == comparable(wanted)
        if query.order in query.select:
            keys = [row[query.select.index(query.order)] for row in got]
            assert keys == sorted(keys, reverse=query.descending)
        said = question.replace("_", " ")
        assert all(value in said for value in literals(query))
        assert all(c.column.rpartition(".")[2].replace("_", " ") in said for c in query.where)
