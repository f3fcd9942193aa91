# SPDX-License-Identifier: Apache-2.0
"""The tables of the record, as ``schema.sql`` defines them, and checks of values of columns."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from planner.schemas import ranges

#: The table in which alembic stores the version of these tables.
VERSION_TABLE = "actionplan_alembic_version"
#: The statements that make the tables, with words in braces for what databases do not share.
TEXT = re.sub(
    r"^ *--.*\n", "", Path(__file__).with_name("schema.sql").read_text("utf-8"), flags=re.MULTILINE
)
_KINDS = {
    **dict.fromkeys(("{counter}", "{count}", "INTEGER"), "integer"),
    "DOUBLE": "double",
    "{moment}": "moment",
    "VARCHAR": "text",
    "{text}": "text",
}
_TYPES = {"integer": (int,), "double": (int, float), "text": (str,), "moment": (object,)}


class Column(NamedTuple):
    """A column: the kind of its values, and whether it may be NULL."""

    kind: str
    nullable: bool


def _columns(table: str) -> dict[str, Column]:
    """Return the columns of the text between the parentheses of a table."""
    found = re.findall(r'^    "?([a-z]\w*)"? (\{\w+\}|\w+)(.*)', table, re.MULTILINE)
    return {
        name: Column(_KINDS[kind], kind != "{counter}" and "NOT NULL" not in rest)
        for name, kind, rest in found
    }


#: The columns of each table, by name.
TABLES: Mapping[str, Mapping[str, Column]] = {
    name: _columns(text)
    for name, text in re.findall(r"^CREATE TABLE (\w+) \((.*?)^\)", TEXT, re.DOTALL | re.MULTILINE)
}
#: The indexes, each with its table.
INDEXES: tuple[tuple[str, str], ...] = tuple(re.findall(r"INDEX (\w+) ON (\w+)", TEXT))
#: Columns whose names are words of SQL, which stand in double quotes in every statement.
_QUOTED = frozenset(re.findall(r'^    "(\w+)"', TEXT, re.MULTILINE))
#: The columns of tables and of results that hold times.
MOMENTS = {"now", "plan_created_at"} | {
    name
    for columns in TABLES.values()
    for name, column in columns.items()
    if column.kind == "moment"
}


@cache
def types(table: str) -> Mapping[str, tuple[type, ...]]:
    """Return the types of values by column, for rows of a table joined with rows of others."""
    found: dict[str, tuple[type, ...]] = {}
    for columns in TABLES.values():
        for name, column in columns.items():
            found[name] = (*found.get(name, ()), *_TYPES[column.kind])
    return found | {name: _TYPES[column.kind] for name, column in TABLES[table].items()}


def insert_into(table: str, *, without: Container[str] = ()) -> str:
    """Return the statement that inserts a row; its parameters have the names of the columns.

    Columns in ``without`` are left to the database.
    """
    given = [name for name in TABLES[table] if name not in without]
    columns = ", ".join(f'"{name}"' if name in _QUOTED else name for name in given)
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join(f':{name}' for name in given)})"


def words(values: Iterable[str]) -> str:
    """Return constant texts of this program, such as states, for an IN."""
    return "({})".format(", ".join(f"'{value}'" for value in values))


def is_limits(value: Any) -> bool:
    """Return whether a value is a mapping to limits, which are whole numbers from 1."""
    return isinstance(value, dict) and all(type(v) is int and v > 0 for v in value.values())


def is_process_id(value: Any) -> bool:
    """Return whether a value is the number of a process."""
    return type(value) is int and 0 <= value < 2**31


def is_interval_s(value: Any) -> bool:
    """Return whether a value is a number of seconds between two heartbeats."""
    return ranges.is_duration(value)


def is_texts(value: Any) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def is_tolerances(value: Any) -> bool:
    """Return whether a value is a list of tolerances of groups of nodes."""
    return isinstance(value, list) and all(
        isinstance(v, dict)
        and isinstance(v.get("name"), str)
        and is_texts(v.get("nodes"))
        and type(v.get("failed_nodes")) is int
        for v in value
    )
