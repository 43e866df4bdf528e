"""Questions turned into SQL, over tables given in the prompt.

The SQL is of one canonical form on one line: columns in the order in which they are asked for, ascending order without
a word for it, `<>` for "is not", all columns qualified if (and only if) tables are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.embedded.corpus import sql_words as words
from engine.embedded.corpus.base import Draw, Example, Phrases, belongs, chat
from engine.embedded.corpus.sql_tables import (
    Column,
    Table,
    date_value,
    linked_tables,
    number_literal,
    number_value,
    one_table,
    schema,
    text_value,
)
from engine.embedded.corpus.sums_steps import plural
from engine.embedded.corpus.wordings import wordings

OPERATORS = {"after": ">", "before": "<"}
MOST_FOLLOW_UPS = 4
NO_PLURAL = ("s", "ed", "_on", "since")  # columns that end so


@dataclass(frozen=True)
class Condition:
    """`values` are literals of SQL."""

    column: str
    operator: str
    values: tuple[str, ...]

    @property
    def sql(self) -> str:
        return f"{self.column} {self.operator} {' AND '.join(self.values)}"


@dataclass(frozen=True)
class Query:
    table: str
    select: tuple[str, ...] = ("*",)
    distinct: bool = False
    join: str = ""  # the parent table and its condition
    where: tuple[Condition, ...] = ()
    connective: str = "AND"
    group: str = ""
    order: str = ""
    descending: bool = False
    limit: int = 0

    @property
    def sql(self) -> str:
        parts = ["SELECT DISTINCT" if self.distinct else "SELECT", ", ".join(self.select), "FROM", self.table]
        if self.join:
            parts += ["JOIN", self.join]
        if self.where:
            parts += ["WHERE", f" {self.connective} ".join(c.sql for c in self.where)]
        if self.group:
            parts += ["GROUP BY", self.group]
        if self.order:
            parts += ["ORDER BY", self.order] + ["DESC"] * self.descending
        if self.limit:
            parts += ["LIMIT", str(self.limit)]
        return " ".join(parts) + ";"


def quoted(value: str) -> str:
    return f"'{value}'"


def said_value(draw: Draw, value: str) -> str:
    return draw.choice(("{}", "{}", "{}", "'{}'", '"{}"')).format(value)


def said(draw: Draw, name: str) -> str:
    """The name of a table or column, its underscores sometimes read as spaces."""
    return name.replace("_", " ") if draw.chance(0.6) else name


def text_condition(draw: Draw, column: Column, name: str) -> tuple[str, Condition, dict[str, str]]:
    value = text_value(draw, column)
    kind = draw.choice(("=", "=", "=", "=", "<>", "prefix", "prefix", "suffix", "contains"))
    if kind in ("=", "<>"):
        return kind, Condition(name, kind, (quoted(value),)), {"v": said_value(draw, value)}
    part = value.split(" ")[0][: draw.integer(1, 3)]
    if kind != "prefix":
        part = value.split(" ")[-1][-draw.integer(1, 3) :].lower()
    pattern = {"prefix": f"{part}%", "suffix": f"%{part}", "contains": f"%{part}%"}[kind]
    spoken = said_value(draw, part) if part[0].isupper() else draw.choice(("'{}'", '"{}"')).format(part)
    return kind, Condition(name, "LIKE", (quoted(pattern),)), {"v": spoken}


def number_condition(draw: Draw, column: Column, name: str) -> tuple[str, Condition, dict[str, str]]:
    kind = draw.choice(("=", "<>", ">", ">", "<", "<", ">=", ">=", "<=", "<=", "between"))
    value = number_literal(draw, column)
    if kind == "between":
        high = str(int(float(value)) + number_value(draw, column))
        return kind, Condition(name, "BETWEEN", (value, high)), {"v": value, "w": high}
    return kind, Condition(name, kind, (value,)), {"v": value}


def date_condition(draw: Draw, column: Column, name: str) -> tuple[str, Condition, dict[str, str]]:
    kind = draw.choice(("after", "after", "before", "before", "=", "between"))
    value = date_value(draw)
    if kind == "between":
        value, high = sorted((value, date_value(draw)))
        return kind, Condition(name, "BETWEEN", (quoted(value), quoted(high))), {"v": value, "w": high}
    return kind, Condition(name, OPERATORS.get(kind, kind), (quoted(value),)), {"v": value}


def condition(draw: Draw, column: Column, noun: bool, name: str = "", spoken: str = "") -> tuple[str, Condition]:
    """What is said, and the condition; `noun` is for the form after "with"."""
    make = text_condition if column.is_text else number_condition if column.is_number else date_condition
    kind, made, slots = make(draw, column, name or column.name)
    while noun and kind not in words.NOUNS:
        kind, made, slots = make(draw, column, name or column.name)
    pool = (words.NOUNS if noun else words.CLAUSES)[kind]
    return draw.phrase(pool, c=spoken or said(draw, column.name), **slots), made


def filtered(draw: Draw, table: Table, query: Query, probability: float) -> tuple[str, Query]:
    """With some probability, one or two conditions: their words, and the query with them."""
    if not draw.chance(probability):
        return "", query
    columns = draw.sample(table.columns, 2 if draw.chance(0.3) else 1)
    noun = draw.chance(0.4)
    made = [condition(draw, c, noun) for c in columns]
    connective = draw.choice(("AND", "AND", "OR"))
    lead = draw.phrase(
        words.NOUN_LEADS if noun else words.CLAUSE_LEADS, x=f" {connective.lower()} ".join(m[0] for m in made)
    )
    return lead, replace(query, where=tuple(m[1] for m in made), connective=connective)


def ordered(draw: Draw, table: Table, query: Query, probability: float) -> tuple[str, Query]:
    if not draw.chance(probability):
        return "", query
    column, descending = draw.choice(table.columns).name, draw.chance(0.5)
    text = draw.phrase(words.DESCENDING if descending else words.ASCENDING, c=said(draw, column))
    return draw.choice((", ", " ")) + text, replace(query, order=column, descending=descending)


def enumeration(draw: Draw, names: Sequence[str]) -> str:
    """name, city and age"""
    if len(names) == 1:
        return names[0]
    if draw.chance(0.15):
        return ", ".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]


def some_names(draw: Draw, table: Table, most: int = 3) -> tuple[str, ...]:
    names = [c.name for c in table.columns]
    if draw.chance(0.12):
        names.append("id")
    return tuple(draw.sample(names, draw.integer(1, min(most, len(names)))))


# Kinds of questions: each gives the question and the query about one table


def list_all(draw: Draw, table: Table) -> tuple[str, Query]:
    where, query = filtered(draw, table, Query(table.name), 0.75)
    order, query = ordered(draw, table, query, 0.3)
    return draw.phrase(words.ALL, t=said(draw, table.name), where=where, order=order), query


def list_columns(draw: Draw, table: Table) -> tuple[str, Query]:
    names = some_names(draw, table)
    where, query = filtered(draw, table, Query(table.name, names), 0.6)
    order, query = ordered(draw, table, query, 0.35)
    many = draw.chance(0.2)
    spoken = [plural(said(draw, n)) if many and not n.endswith(NO_PLURAL) else said(draw, n) for n in names]
    columns = enumeration(draw, spoken)
    return draw.phrase(words.LIST, cols=columns, t=said(draw, table.name), where=where, order=order), query


def count(draw: Draw, table: Table) -> tuple[str, Query]:
    where, query = filtered(draw, table, Query(table.name, ("COUNT(*)",)), 0.7)
    return draw.phrase(words.COUNT, t=said(draw, table.name), where=where), query


def of_one_column(draw: Draw, table: Table) -> tuple[str, Query]:
    """DISTINCT, or its count."""
    column = draw.choice(table.columns).name
    pool, query = words.DISTINCT, Query(table.name, (column,), distinct=True)
    if draw.chance(0.2):
        pool, query = words.COUNT_DISTINCT, Query(table.name, (f"COUNT(DISTINCT {column})",))
    where, query = filtered(draw, table, query, 0.25)
    return draw.phrase(pool, c=said(draw, column), t=said(draw, table.name), where=where), query


def function_of(draw: Draw, table: Table) -> tuple[str, str]:
    """An aggregate of a column, in words and in SQL; COUNT(*) if no column can be aggregated."""
    columns = [c for c in table.columns if not c.is_text]
    if not columns:
        return f"number of {draw.choice(('rows', 'entries'))}", "COUNT(*)"
    column = draw.choice(columns)
    pools = words.FUNCTIONS if column.is_number else words.DATE_FUNCTIONS
    function = draw.choice(tuple(pools))
    return draw.phrase(pools[function], c=said(draw, column.name)), f"{function}({column.name})"


def aggregate(draw: Draw, table: Table) -> tuple[str, Query]:
    spoken, function = function_of(draw, table)
    where, query = filtered(draw, table, Query(table.name, (function,)), 0.5)
    return draw.phrase(words.AGGREGATE, f=spoken, t=said(draw, table.name), where=where), query


def group(draw: Draw, table: Table) -> tuple[str, Query]:
    column = draw.choice([c for c in table.columns if c.is_text] or table.columns).name
    by, name = said(draw, column), said(draw, table.name)
    if draw.chance(0.5):
        query = Query(table.name, (column, "COUNT(*)"), group=column)
        where, query = filtered(draw, table, query, 0.2)
        return draw.phrase(words.GROUP_COUNT, t=name, g=by, where=where), query
    spoken, function = function_of(draw, table)
    where, query = filtered(draw, table, Query(table.name, (column, function), group=column), 0.2)
    return draw.phrase(words.GROUP, t=name, g=by, f=spoken, where=where), query


def first(draw: Draw, table: Table) -> tuple[str, Query]:
    """The first rows, or the top ones by a number or date."""
    names = some_names(draw, table, 2) if draw.chance(0.5) else ()
    head = f"the {enumeration(draw, [said(draw, n) for n in names])} of " if names else ""
    query = Query(
        table.name, names or ("*",), limit=draw.choice((2, 3, 4, 5, 5, 6, 7, 8, 10, 10, 12, 15, 20, 25, 50, 100))
    )
    where, query = filtered(draw, table, query, 0.25)
    columns = [c for c in table.columns if not c.is_text]
    slots = {"head": head, "n": query.limit, "t": said(draw, table.name), "where": where}
    if not columns or draw.chance(0.15):
        return draw.phrase(words.FIRST, **slots), query
    column, descending = draw.choice(columns), draw.chance(0.65)
    many, few = ("highest", "largest", "greatest"), ("lowest", "smallest")
    if column.flavour == "d":
        many, few = ("latest", "newest", "most recent"), ("earliest", "oldest")
    text = draw.phrase(
        words.RANKED,
        most=draw.choice(many if descending else few),
        top="top" if descending else "bottom",
        c=said(draw, column.name),
        **slots,
    )
    return text, replace(query, order=column.name, descending=descending)


KINDS: tuple[Callable[[Draw, Table], tuple[str, Query]], ...] = (
    *(list_all,) * 5,
    *(list_columns,) * 6,
    *(count,) * 3,
    of_one_column,
    *(aggregate,) * 3,
    *(group,) * 3,
    *(first,) * 3,
)

MENTIONS = Phrases(
    "the {c} of the {t}",
    "{t}.{c}",
    "the {c} from {t}",
    "the {c} (of|from) (the |){t}",
    "{c} of {t}",
    "{c} from {t}",
    "the {t} {c}",
    more=wordings("sql.MENTIONS"),
)


def joined(draw: Draw, child: Table, parent: Table) -> tuple[str, Query]:
    """Columns of two tables; everything is said with its table, and qualified in SQL."""
    columns = [(child, draw.choice(child.columns)), (parent, draw.choice(parent.columns))]
    if draw.chance(0.25):
        table = draw.choice((child, parent))
        rest = [(table, c) for c in table.columns if (table, c) not in columns]
        columns.append(draw.choice(rest))
    columns = draw.sample(columns, len(columns))
    template = draw.choice(MENTIONS.of(draw.split))

    def mention(table: Table, column: Column) -> str:
        if template == "{t}.{c}":
            return f"{table.name}.{column.name}"
        return draw.expand(template, t=said(draw, table.name), c=said(draw, column.name))

    query = Query(
        child.name,
        tuple(f"{t.name}.{c.name}" for t, c in columns),
        join=f"{parent.name} ON {child.name}.{child.foreign_key} = {parent.name}.id",
    )
    where = order = ""
    if draw.chance(0.35):
        table = draw.choice((child, parent))
        column = draw.choice(table.columns)
        text, made = condition(draw, column, False, f"{table.name}.{column.name}", mention(table, column))
        where, query = " where " + text, replace(query, where=(made,))
    if draw.chance(0.2):
        table, column = draw.choice(columns)
        pool, descending = (words.DESCENDING, True) if draw.chance(0.4) else (words.ASCENDING, False)
        order = ", " + draw.phrase(pool, c=mention(table, column))
        query = replace(query, order=f"{table.name}.{column.name}", descending=descending)
    asked = enumeration(draw, [mention(t, c) for t, c in columns])
    text = draw.phrase(
        words.JOIN, cols=asked, a=said(draw, child.name), b=said(draw, parent.name), where=where, order=order
    )
    return text, query


def draw_question(draw: Draw) -> tuple[str, Query, list[Table]]:
    """A question, its query, and the tables of the schema in their order there."""
    if draw.chance(0.14):
        child, parent = linked_tables(draw)
        question, query = joined(draw, child, parent)
        tables = [child, parent]
    else:
        tables = [one_table(draw)]
        if draw.chance(0.25):
            tables = list(linked_tables(draw))
        question, query = draw.choice(KINDS)(draw, draw.choice(tables))
    return question, query, draw.sample(tables, len(tables))


def normal(sql: str) -> str:
    return " ".join(sql.split()).removesuffix(";").rstrip()


class Sql:
    name = "sql"

    def make(self, draw: Draw) -> Example:
        question, query, tables = draw_question(draw)
        template = draw.choice(words.PROMPTS.of(draw.split))
        if draw.chance(0.1):
            question = question[0].lower() + question[1:]
        prompt = draw.expand(
            template,
            q=question[0].upper() + question[1:] if template[0] == "{" else question,
            schema=schema(draw, tables),
        )
        if not template.startswith("{schema}"):
            prompt = draw.casual(prompt)
        key, messages = query.sql, chat(prompt, query.sql)
        for _ in range(draw.follow_ups(MOST_FOLLOW_UPS)):
            question, more = draw.choice(KINDS)(draw, draw.choice(tables))
            if belongs(more.sql, draw.split):
                messages += chat(draw.casual(question[0].upper() + question[1:]), more.sql)
                query = more
        return Example(self.name, messages, key, query.sql)

    def check(self, example: Example, answer: str) -> bool:
        return normal(answer) == normal(example.expect)


SKILL = Sql()
