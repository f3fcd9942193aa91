# SPDX-License-Identifier: Apache-2.0
"""Parts of SQL statements, and the compiled text of a statement with its value conversions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy import bindparam

#: A row that was read: values by column names.
Row = Mapping[Any, Any]


Statement = TypeVar("Statement", bound=sa.ClauseElement)


class Deferred(Generic[Statement]):
    """A statement that is built when it is first called, because a command needs few of them."""

    def __init__(self, make: Callable[[], Statement]) -> None:
        self._make = make

    def __call__(self) -> Statement:
        """Return the statement, always the same object."""
        return self._made

    @cached_property
    def _made(self) -> Statement:
        return self._make()


def word(value: str) -> sa.ColumnElement[str]:
    """Return a text, such as a state, as an SQL literal, which saves a bind parameter.

    The text is not escaped: it must be a constant of this program.
    """
    return sa.literal_column(f"'{value}'", sa.String)


def words(values: Iterable[str]) -> list[sa.ColumnElement[str]]:
    """Return texts as SQL literals for an IN; see :func:`word`."""
    return [word(value) for value in values]


def insert_into(table: sa.Table, *, without: Container[str] = ()) -> sa.Insert:
    """Return the statement that inserts a row; its parameters have the names of the columns.

    Columns in ``without`` are left to the database.
    """
    given = [column for column in table.c if column.key not in without]
    return sa.insert(table).inline().values({c: bindparam(c.key) for c in given})


#: The type of statements that transactions run: built, or to be built when first needed.
Runnable = sa.ClauseElement | Deferred[Any]


class UnreadableValue(Exception):
    """A row has a value that cannot be converted: it is damaged."""


class Compiled:
    """The text of one statement in one dialect, and the conversions of its values.

    Drivers convert values of standard types. Values of the types in :mod:`.tables` (each a
    TypeDecorator) are converted here.
    """

    def __init__(self, runnable: Runnable, dialect: sa.Dialect) -> None:
        statement = runnable() if isinstance(runnable, Deferred) else runnable
        compiled: Any = statement.compile(dialect=dialect)
        self.text = str(compiled)
        self._positional: bool = compiled.positional
        kinds = {name: bind.type for name, bind in compiled.binds.items()}
        # Parameters with fixed values, such as the OFFSET that SQLAlchemy adds to a LIMIT.
        self._constants = {n: bind.value for n, bind in compiled.binds.items() if not bind.required}
        self._names = tuple(compiled.positiontup if compiled.positional else kinds)
        self._values = _values_of(self._names)
        self._conversions = [
            (place, convert)
            for place, name in enumerate(self._names)
            if (convert := _to_driver(kinds[name], dialect)) is not None
        ]
        columns = list(statement.selected_columns) if isinstance(statement, sa.Select) else []
        self._columns = [str(column.key) for column in columns]
        self._types = [column.type for column in columns]
        #: The combinations of types of values that rows may have, as far as rows have had them.
        self._accepted = set[tuple[type, ...]]()
        self._converters = [
            (str(column.key), convert)
            for column in columns
            if (convert := _from_driver(column.type, dialect)) is not None
        ]

    def parameters(self, values: Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
        """Convert parameters, given by name, to the form that the driver expects."""
        if self._constants:
            values = {**self._constants, **values}
        found: Sequence[Any] = self._values(values)
        if self._conversions:
            found = list(found)
            for place, convert in self._conversions:
                found[place] = convert(found[place])
        return found if self._positional else dict(zip(self._names, found, strict=True))

    def unconverted(self, found: Iterable[Sequence[Any]]) -> list[Row]:
        """Return the rows that the driver read as mappings, with values as they are stored."""
        return [dict(zip(self._columns, values, strict=True)) for values in found]

    def rows(self, found: Iterable[Sequence[Any]]) -> list[Row]:
        """Convert the rows that the driver read to mappings by column names.

        Raises UnreadableValue for a value that its column type cannot convert.
        """
        rows: list[Row] = []
        for values in found:
            row = dict(zip(self._columns, values, strict=True))
            try:
                for key, convert in self._converters:
                    if row[key] is not None:
                        row[key] = convert(row[key])
            except (ValueError, TypeError) as reason:
                raise UnreadableValue(str(reason)) from reason
            rows.append(row)
        return rows

    def typed(self, found: Iterable[Sequence[Any]]) -> list[Row]:
        """Return rows as :meth:`rows`; raise UnreadableValue also for a value of another type.

        SQLite stores values of any type in any column.
        """
        values_of_rows = list(found)
        # Few combinations of types occur, and each is checked once.
        for types in {tuple(map(type, values)) for values in values_of_rows} - self._accepted:
            for name, kind, column in zip(self._columns, types, self._types, strict=True):
                if not issubclass(kind, (*_python_types(column), type(None))):
                    raise UnreadableValue(f"{name} is of another type than its column")
            self._accepted.add(types)
        return self.rows(values_of_rows)


def _python_types(column: sa.types.TypeEngine[Any]) -> tuple[type, ...]:
    """Return the types of the values of a column; any type if a converter reads the values."""
    if isinstance(column, sa.Integer):
        return (int,)
    if isinstance(column, sa.Double):
        return (int, float)
    inner = column.impl if isinstance(column, sa.TypeDecorator) else column
    return (str,) if isinstance(inner, sa.String) else (object,)


def _values_of(names: Sequence[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Return a function that reads the values of these names, as a tuple, from a mapping."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda values: tuple(values[name] for name in names)


def _to_driver(kind: sa.types.TypeEngine[Any], dialect: sa.Dialect) -> Callable[[Any], Any] | None:
    make: Any = type(kind)
    return _converter(make, dialect) if isinstance(kind, sa.TypeDecorator) else None


@lru_cache(maxsize=16)
def _converter(
    make: Callable[[], sa.TypeDecorator[Any]], dialect: sa.Dialect
) -> Callable[[Any], Any] | None:
    """Return the function that converts values of a TypeDecorator; all statements share it."""
    convert = make().dialect_impl(dialect).bind_processor(dialect)
    # The rows of a commit have the same time, which is converted once thanks to the cache.
    return None if convert is None else lru_cache(maxsize=8)(convert)


def _from_driver(
    kind: sa.types.TypeEngine[Any], dialect: sa.Dialect
) -> Callable[[Any], Any] | None:
    ours = isinstance(kind, sa.TypeDecorator)
    return kind.dialect_impl(dialect).result_processor(dialect, None) if ours else None
