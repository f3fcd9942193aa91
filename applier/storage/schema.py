# SPDX-License-Identifier: Apache-2.0
"""The tables of the record, by ``schema.sql``, and what differs between the kinds of databases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

#: The table with the version of these tables.
VERSION_TABLE = "actionplan_alembic_version"
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
#: The statements that make the tables, with words in braces for what databases do not share.
TEXT = re.sub(_COMMENT, "", Path(__file__).with_name("schema.sql").read_text("utf-8"))
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


class Dialect(NamedTuple):
    """How one kind of database spells what the statements and ``schema.sql`` leave open.

    ``parameter`` is the place of the value of a name, ``now`` the time by the clock of the database
    plus ``{}`` seconds, which may be negative.
    """

    begin_write: str
    begin_read: str
    parameter: str
    now: str
    #: What stands for the words in braces in ``schema.sql``.
    types: Mapping[str, str]
    #: What ends the statement that creates a table.
    table_options: str
    #: Selects the name of each table and view, and whether it is a view.
    tables: str
    #: Selects the name of each column, and that of its table.
    columns: str
    #: Selects the name of each index, and that of its table.
    indexes: str

    def creation(self) -> list[str]:
        """Return the statements that make the tables and the row with the last numbers."""
        return self.spelt(TEXT)

    def spelt(self, text: str) -> list[str]:
        """Return the statements of a text in the form of ``schema.sql``."""
        for word, spelt in self.types.items():
            text = text.replace(f"{{{word}}}", spelt)
        made = [one.strip() for one in re.sub(_COMMENT, "", text).split(";") if one.strip()]
        options = f" {self.table_options}"
        return [f"{one}{options}" if one.startswith("CREATE TABLE") else one for one in made]


SQLITE = Dialect(
    # IMMEDIATE waits for the write lock at the start, so that no later statement is refused it.
    begin_write="BEGIN IMMEDIATE",
    begin_read="BEGIN",
    parameter="?",
    # As text, in the form in which times are written.
    now="strftime('%Y-%m-%d %H:%M:%f000', 'now', ({}) || ' seconds')",
    types={
        "counter": "INTEGER NOT NULL PRIMARY KEY",
        # SQLite has one type of whole numbers; a key of this name is the number of the row.
        "count": "INTEGER",
        "moment": "DATETIME",
        "text": "TEXT",
        "in_place": "",
    },
    table_options="",
    tables="""
    SELECT name, type = 'view' AS is_view FROM sqlite_master
    WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite/_%' ESCAPE '/'""",
    columns="""
    SELECT m.name AS table_name, c.name AS name
    FROM sqlite_master AS m CROSS JOIN pragma_table_info(m.name) AS c""",
    # The index of a constraint has no name of its own: it stands in the text of the table.
    indexes="""
    SELECT tbl_name AS table_name, name FROM sqlite_master WHERE type = 'index'""",
)
POSTGRESQL = Dialect(
    begin_write="BEGIN",
    # Two statements read the same snapshot; with the other databases this is the default.
    begin_read="BEGIN ISOLATION LEVEL REPEATABLE READ",
    parameter="%({})s",
    # Not now(), which is the time at which the transaction began.
    now="((clock_timestamp() AT TIME ZONE 'utc') + ({}) * interval '1 second')",
    types={
        "counter": "SERIAL PRIMARY KEY",
        "count": "BIGINT",
        "moment": "TIMESTAMP",
        "text": "TEXT",
        # A page has room for the next version of its rows.
        "in_place": "WITH (fillfactor = 70)",
    },
    table_options="",
    tables="""
    SELECT relname AS name, relkind IN ('v', 'm') AS is_view FROM pg_class
    WHERE relkind IN ('r', 'p', 'v', 'm') AND relnamespace = current_schema()::regnamespace""",
    columns="""
    SELECT table_name, column_name AS name FROM information_schema.columns
    WHERE table_schema = current_schema()""",
    indexes="""
    SELECT tablename AS table_name, indexname AS name FROM pg_indexes
    WHERE schemaname = current_schema()""",
)
MYSQL = Dialect(
    begin_write="BEGIN",
    begin_read="BEGIN",
    parameter="%({})s",
    now="(utc_timestamp(6) + INTERVAL ({}) SECOND)",
    types={
        "counter": "INTEGER NOT NULL AUTO_INCREMENT PRIMARY KEY",
        "count": "BIGINT",
        # A plain DATETIME has whole seconds, and a plain TEXT holds 64 KiB at most.
        "moment": "DATETIME(6)",
        "text": "LONGTEXT",
        "in_place": "",
    },
    table_options="ENGINE = InnoDB CHARSET = utf8mb4 COLLATE = utf8mb4_bin",
    tables="""
    SELECT table_name AS name, table_type = 'VIEW' AS is_view FROM information_schema.tables
    WHERE table_schema = DATABASE()""",
    columns="""
    SELECT table_name AS table_name, column_name AS name FROM information_schema.columns
    WHERE table_schema = DATABASE()""",
    indexes="""
    SELECT DISTINCT table_name AS table_name, index_name AS name
    FROM information_schema.statistics
    WHERE table_schema = DATABASE()""",
)


@cache
def types(table: str) -> Mapping[str, tuple[type, ...]]:
    """Return the types of values by column, for rows of a table joined with rows of others."""
    found: dict[str, tuple[type, ...]] = {}
    for columns in TABLES.values():
        for name, column in columns.items():
            found[name] = (*found.get(name, ()), *_TYPES[column.kind])
    return found | {name: _TYPES[column.kind] for name, column in TABLES[table].items()}


@cache
def insert_into(table: str, given: tuple[str, ...]) -> str:
    """Return the statement that inserts rows of which the values with these names are given.

    Those that are no columns of the table are ignored. Other columns are left to the database.
    """
    names = [name for name in TABLES[table] if name in given]
    columns = ", ".join([f'"{name}"' if name in _QUOTED else name for name in names])
    return f"INSERT INTO {table} ({columns}) VALUES (:{', :'.join(names)})"


def words(values: Iterable[str]) -> str:
    """Return constant texts of this program, such as states, for an IN."""
    return "({})".format(", ".join(f"'{value}'" for value in values))


def is_limits(value: Any) -> bool:
    """Return whether a value is a mapping to limits, which are whole numbers from 1."""
    return isinstance(value, dict) and all(type(v) is int and v > 0 for v in value.values())


def is_process_id(value: Any) -> bool:
    """Return whether a value is the number of a process."""
    return type(value) is int and 0 <= value < 2**31


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
