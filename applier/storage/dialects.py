# SPDX-License-Identifier: Apache-2.0
"""All that differs between the kinds of databases: texts of statements, and conversions of values.

Values are converted by their types and columns by their names: only times need it. Texts, numbers
and NULL are passed as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from applier.storage.schema import MOMENTS, TEXT, types

#: The time by the clock of the database, which all processes share, plus some seconds.
_NOW = re.compile(r"now_plus\(([^()]*)\)")
#: A parameter. No text of a statement contains a colon before a letter otherwise.
_PARAMETER = re.compile(r"(?<![:\w]):([a-z]\w*)")


class Dialect(NamedTuple):
    """How one kind of database spells what the statements and ``schema.sql`` leave open.

    ``parameter`` is the place of the value of a name, ``now`` the time by the clock of the database
    plus ``{}`` seconds, which may be negative.
    """

    name: str
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
        text = TEXT
        for word, spelt in self.types.items():
            text = text.replace(f"{{{word}}}", spelt)
        made = [one.strip() for one in text.split(";") if one.strip()]
        options = f" {self.table_options}"
        return [f"{one}{options}" if one.startswith("CREATE TABLE") else one for one in made]


SQLITE = Dialect(
    name="sqlite",
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
    name="postgresql",
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
    name="mysql",
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

_NAME = itemgetter(0)
#: A row that was read: values by column names.
Row = Mapping[Any, Any]
#: The types of most values, which need no conversion.
_PLAIN = frozenset({str, int, float, type(None)})


class UnreadableValue(Exception):
    """A row has a value that cannot be converted: it is damaged."""


@lru_cache(maxsize=8)  # the rows of a commit have the same time
def _naive(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(tzinfo=None)


@lru_cache(maxsize=8)
def _as_text(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC)


def _from_text(at: str) -> datetime:
    return datetime.fromisoformat(at).replace(tzinfo=UTC)


class Compiled:
    """A statement for one kind of database.

    It is SQL with parameters as ``:name``, and with ``now_plus(SECONDS)`` for the time.

    >>> Compiled("SELECT name FROM t WHERE uuid = :uuid AND name LIKE '%'", POSTGRESQL).text
    "SELECT name FROM t WHERE uuid = %(uuid)s AND name LIKE '%%'"
    """

    def __init__(self, statement: str, dialect: Dialect) -> None:
        text = _NOW.sub(dialect.now.replace("{}", r"\1"), statement)
        if dialect.parameter != "?":
            text = text.replace("%", "%%")
        #: The text for the driver.
        self.text = _PARAMETER.sub(dialect.parameter.replace("{}", r"\1"), text)
        self._is_file = is_file = dialect is SQLITE
        #: The names of its parameters, in their order.
        self.names: list[str] = _PARAMETER.findall(statement)
        self._to_driver: Callable[[datetime], Any] = _as_text if is_file else _naive
        self._from_driver: Callable[[Any], datetime] = _from_text if is_file else _aware
        #: The combinations of types of values that rows may have, as far as rows have had them.
        self._accepted = set[tuple[type, ...]]()

    def parameters(self, values: Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
        """Convert parameters to the form that the driver expects."""
        convert = self._to_driver
        if not self._is_file:
            return {k: convert(v) if isinstance(v, datetime) else v for k, v in values.items()}
        found = [*map(values.__getitem__, self.names)]
        if _PLAIN.issuperset(map(type, found)):
            return found
        return [convert(v) if isinstance(v, datetime) else v for v in found]

    def unconverted(self, cursor: Any) -> list[Row]:
        """Return the rows of a cursor as mappings, with values as they are stored."""
        columns = [*map(_NAME, cursor.description)]
        return [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]

    def rows(self, described: Sequence[Any], found: Iterable[Sequence[Any]]) -> list[Row]:
        """Return rows as mappings; raises UnreadableValue.

        ``described`` are the columns as drivers describe them: each begins with its name.
        """
        columns = [*map(_NAME, described)]
        moments, convert = MOMENTS.intersection(columns), self._from_driver
        rows: list[Row] = []
        for values in found:
            row = dict(zip(columns, values, strict=True))
            try:
                for key in moments:
                    if row[key] is not None:
                        row[key] = convert(row[key])
            except (ValueError, TypeError, AttributeError) as reason:
                raise UnreadableValue(str(reason)) from reason
            rows.append(row)
        return rows

    def typed(
        self, table: str, described: Sequence[Any], found: Sequence[Sequence[Any]]
    ) -> list[Row]:
        """Return rows as :meth:`rows`; raise UnreadableValue also for a value of another type.

        SQLite stores values of any type in any column.
        """
        # Few combinations of types occur, and each is checked once.
        for kinds in {tuple(map(type, values)) for values in found} - self._accepted:
            for (name, *_), kind in zip(described, kinds, strict=True):
                if not issubclass(kind, (*types(table).get(name, (object,)), type(None))):
                    raise UnreadableValue(f"{name} is of another type than its column")
            self._accepted.add(kinds)
        return self.rows(described, found)
