# SPDX-License-Identifier: Apache-2.0
"""The statements of the record: those in the files of SQL beside this one.

They are SQL for every kind of database, for which :class:`Compiled` adapts them: times in values
and columns are converted, texts, numbers and NULL are passed as they are. Whether a plan may start
already is decided by the clock of the database, which all appliers share.

In ``plans.sql``, ``events.sql`` and ``workers.sql`` a line ``-- NAME`` stands above each statement,
which is the constant of that name here. ``{NAME}`` in a later one stands for its text, and such a
name in lower case for a list of states. ``THESE`` stands for the condition that a row is that of
one of several actions; see :func:`writes`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from applier.storage.schema import MOMENTS, SQLITE, Dialect, types, words
from applier.storage.state_refusals import RUNNING_PLAN, UNDER_WAY, UNDOABLE
from planner.plan.states import ENDED_PLAN

#: The lists of states in statements, by the words that stand for them.
LISTS = {
    "undoable": words(sorted(UNDOABLE)),
    "ended": words(sorted(ENDED_PLAN)),
    "running": words(RUNNING_PLAN),
    "under_way": words(UNDER_WAY),
}


def read(text: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the statements of a file of SQL by name; ``known`` are other texts for ``{NAME}``.

    >>> read("-- ONE\\n-- A comment.\\nSELECT 1\\n\\n-- TWO\\n{ONE}, 2", {})
    {'ONE': 'SELECT 1', 'TWO': 'SELECT 1, 2'}
    """
    found = dict(known)
    for name, body in re.findall(
        r"^-- (\w+)\n(.*?)(?=^-- \w+\n|\Z)", text, re.DOTALL | re.MULTILINE
    ):
        bare = re.sub(r"^--.*\n", "", body, flags=re.MULTILINE).strip()
        found[name] = re.sub(r"\{(\w+)\}", lambda word: found[word[1]], bare)
    return {name: text for name, text in found.items() if name not in known}


_FILES = ("plans.sql", "events.sql", "workers.sql")
#: The text of the files.
SQL = "".join(Path(__file__).with_name(name).read_text("utf-8") for name in _FILES)
globals().update(read(SQL, LISTS))
if TYPE_CHECKING:

    def __getattr__(name: str) -> str: ...


#: Delete all rows of a plan but those of its events, which are deleted when they are old. Rows that
#: refer to others come first.
ALL_OF_A_PLAN = (
    *(
        f"DELETE FROM actionplan_{table} WHERE plan = :plan_uuid"
        for table in (
            *("worker_job", "reservation", "approval", "history", "answer"),
            *("request", "attempt", "action_state", "action"),
        )
    ),
    "DELETE FROM actionplan_plan WHERE uuid = :plan_uuid",
)

#: The limit of a list that has none.
ALL = sys.maxsize


def beginning(reference: str) -> str:
    """Return the LIKE pattern, for :data:`FIND`, of all texts that begin with ``reference``.

    >>> beginning("6a1f_")
    '6a1f/_%'
    """
    # No uuid begins with a longer text, and SQLite refuses long patterns.
    return exactly(reference[:40]) + "%"


def exactly(text: str | None) -> str:
    """Return the LIKE pattern of a text; that of any text for None."""
    return "%" if text is None else re.sub("([/%_])", r"/\1", text)


class Write(NamedTuple):
    """A statement with its parameters; ``changes`` is how many rows it must change, None any."""

    statement: str
    parameters: Mapping[str, Any]
    changes: int | None


#: The parameters for the uuids of actions; one statement has at most this many actions.
UUIDS = tuple(f"uuid_{i}" for i in range(50))
#: How many actions are in one statement, by kind of database. PostgreSQL gets one statement for
#: each action: without statistics of the table, it would read all rows of a plan to find several
#: of them. In its pipeline, single statements are cheap.
AT_ONCE = {"sqlite": len(UUIDS), "mysql": len(UUIDS), "postgresql": 1}


@cache
def about(statement: str, number: int) -> str:
    """Return a statement on a number of actions."""
    uuids = ", ".join(f":{name}" for name in UUIDS[:number])
    return statement.replace("THESE", f"s.plan = :plan_uuid AND s.uuid IN ({uuids})")


def writes(
    statement: str,
    uuids: Sequence[str],
    values: Mapping[str, Any],
    *,
    at_once: int = 1,
    checked: bool = True,
) -> Iterator[Write]:
    """Yield the writes for these actions; each statement has up to ``at_once`` of them.

    ``values`` are the other parameters. If ``checked``, each write must change as many rows as it
    has actions.
    """
    for first in range(0, len(uuids), at_once):
        some = uuids[first : first + at_once]
        parameters = {**values, **dict(zip(UUIDS, some, strict=False))}
        yield Write(about(statement, len(some)), parameters, len(some) if checked else None)


# Conversions

#: The time by the clock of the database, which all processes share, plus some seconds.
_NOW = re.compile(r"now_plus\(([^()]*)\)")
#: A parameter. No text of a statement contains a colon before a letter otherwise.
_PARAMETER = re.compile(r"(?<![:\w]):([a-z]\w*)")
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

    >>> from applier.storage.schema import POSTGRESQL
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

    def rows(
        self, described: Sequence[Any], found: Sequence[Sequence[Any]], table: str | None = None
    ) -> list[Row]:
        """Return rows as mappings; raises UnreadableValue.

        ``described`` are the columns as drivers describe them: each begins with its name. With a
        ``table``, the types of all values are checked: SQLite stores any in any column.
        """
        # Few combinations of types occur, and each is checked once.
        combinations = {tuple(map(type, values)) for values in found} if table else set()
        for kinds in combinations - self._accepted:
            for (name, *_), kind in zip(described, kinds, strict=True):
                if not issubclass(kind, (*types(str(table)).get(name, (object,)), type(None))):
                    raise UnreadableValue(f"{name} is of another type than its column")
            self._accepted.add(kinds)
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
