# SPDX-License-Identifier: Apache-2.0
"""Checks a whole record, on every kind of database, without changing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from applier.errors import PlanNotFound, StoreError
from applier.storage import damage, damaged_plans, event_rows, schema_version, statements
from applier.storage.compiled import Row, Runnable, UnreadableValue
from applier.storage.connection import parse, shown
from applier.storage.database import BEGIN
from applier.storage.refusals import Damaged, is_damage, translate_errors
from applier.storage.tables import (
    VERSION_TABLE,
    action_states,
    actions,
    answers,
    approvals,
    attempts,
    dead_events,
    events,
    history,
    imported_durations,
    metadata,
    plans,
    requests,
    reservations,
    services,
    subscriptions,
    turn,
    worker_jobs,
    workers,
)
from applier.storage.transactions import Transaction, Transactions
from applier.storage.unwritable import readable
from planner.errors import short

Begin = Callable[[], AbstractContextManager[Transaction]]
#: The most problems that SQLite's own check lists, and the most rows without a plan per table.
_MOST = 50
#: The tables whose rows belong to a plan.
_OF_PLANS = (actions, action_states, approvals, attempts, requests, reservations, worker_jobs)
#: The tables whose rows are checked without the plan that they belong to.
_SINGLE = (
    *(approvals, requests, reservations, services, turn, history, answers),
    *(events, subscriptions, dead_events, imported_durations, worker_jobs, workers),
)
#: Stands for the time of an event, which is checked as a column.
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_LONG = (attempts.c.message, attempts.c.output)
#: The attempts of a plan; of their texts, which may be long, only the first character.
_ATTEMPTS = sa.select(
    *(c for c in attempts.columns if c not in set(_LONG)),
    *(sa.func.substr(c, 1, 1).label(c.key) for c in _LONG),
).where(attempts.c.plan == sa.bindparam("plan_uuid"))


def _without(table: sa.Table, whole: sa.Table, **keys: str) -> sa.Select[Any]:
    """Select the keys of rows for which another table has no row."""
    same = [table.c[own] == whole.c[other] for own, other in keys.items()]
    columns = [table.c[own] for own in keys]
    missing = sa.not_(sa.exists().where(*same))
    return sa.select(*columns).where(missing).distinct().limit(_MOST)


_ORPHANS = (
    *((table, _without(table, plans, plan="uuid")) for table in _OF_PLANS),
    (attempts, _without(attempts, actions, plan="plan", action="uuid")),
)


class Checked(NamedTuple):
    """The result of a check: how many plans were read, and the problems, one sentence each.

    ``record`` is the URL, without a password. Without problems, the record is sound.
    """

    record: str
    plans: int
    problems: list[str]


def check(connection: str) -> Checked:
    """Check the record at a URL, and change nothing.

    Raises StoreError if it cannot be opened, or has the tables of another program or version.
    """
    url = parse(connection)
    require_file(url)
    with translate_errors(url):
        try:
            return _checked(url)
        except DatabaseError as error:
            if not is_damage(error.orig):
                raise
            return Checked(shown(url), 0, [f"no plan can be read: {error.orig}"])


def require_file(url: sa.URL) -> None:
    """Raise StoreError for a SQLite file that does not exist, or that is empty."""
    path = Path(url.database or "")
    if url.get_backend_name() != "sqlite":
        return
    if not path.exists():
        raise StoreError(f"{shown(url)}: there is no record yet")
    if path.is_file() and not path.stat().st_size:
        raise StoreError(
            f"{shown(url)}: the file is empty (0 bytes): no record is in it; a copy made by "
            "actionplan db backup can take its place"
        )


def _checked(url: sa.URL) -> Checked:
    with readable(url) as engine:
        with engine.connect() as database:
            schema_version.require(database, url)
            problems = list(_tables(database))
            if problems:
                return Checked(shown(url), 0, problems)
            problems += _beside_tables(database)
        transactions = Transactions(engine)
        begin = partial(transactions.begin, BEGIN[engine.dialect.name][1])
        try:
            problems += _of_database(engine)
            uuids = [row["uuid"] for row in _read(begin, statements.NUMBERS, problems)]
            problems += [f"plan {short(u)}: {wrong}" for u in uuids for wrong in _of_plan(begin, u)]
            problems += _orphans(begin)
            for table in _SINGLE:
                for row in _read(begin, sa.select(table), problems):
                    wrong = list(damage.of_row(table, row)) or _of_form(table, row)
                    problems += [f"{table.name}: {text}" for text in wrong]
            if len(_read(begin, sa.select(turn), problems)) != 1:
                problems.append(f"{turn.name} has not exactly one row")
        finally:
            transactions.close()
    return Checked(shown(url), len(uuids), problems)


def _tables(database: sa.Connection) -> Iterator[str]:
    """Yield a sentence for each table and column that is missing."""
    inspector = sa.inspect(database)
    there = set(inspector.get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in there:
            yield f"the table {table.name} is missing"
            continue
        columns = {column["name"] for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.name not in columns:
                yield f"the column {column.name} of {table.name} is missing"


def _beside_tables(database: sa.Connection) -> Iterator[str]:
    """Yield a sentence for each missing index, and one if there is more than one version."""
    inspector = sa.inspect(database)
    for table in metadata.sorted_tables:
        found = [*inspector.get_indexes(table.name), *inspector.get_unique_constraints(table.name)]
        there = {one["name"] for one in found}
        unique = (c for c in table.constraints if isinstance(c, sa.UniqueConstraint))
        wanted = {*(one.name for one in table.indexes), *(one.name for one in unique)}
        for name in sorted(map(str, wanted - there)):
            yield f"the index {name} of {table.name} is missing"
    version = sa.table(VERSION_TABLE)
    number = database.execute(sa.select(sa.func.count()).select_from(version)).scalar()
    if number != 1:
        yield f"{version.name} has {number} rows in place of one"


def _of_form(table: sa.Table, row: Row) -> list[str]:
    """Return what is wrong with the JSON in the columns of a row whose columns are sound."""
    try:
        if table is events:
            event_rows.event_of({**row, "at": _ANY_TIME, "name": None, "action_type": None})
        elif table is subscriptions:
            event_rows.subscription_of(row)
        elif table is dead_events:
            event_rows.dead_of(row)
    except UnreadableValue as reason:
        return [f"{row.get('number', row.get('name'))}: {reason}"]
    return []


def _of_database(engine: sa.Engine) -> Iterator[str]:
    """Yield the problems that the database's own check of its files reports.

    PostgreSQL has no such check.
    """
    with engine.connect() as database:
        if engine.dialect.name == "sqlite":
            try:
                for (text,) in database.exec_driver_sql(f"PRAGMA integrity_check({_MOST})"):
                    if text != "ok":
                        yield f"integrity: {' '.join(text.split())}"
            except DatabaseError as error:
                yield f"integrity: {error.orig}"
        elif engine.dialect.name == "mysql":
            names = ", ".join(metadata.tables)
            for name, _, kind, text in database.exec_driver_sql(f"CHECK TABLE {names}"):
                if kind != "note" and text != "OK":
                    yield f"integrity: {name}: {text}"


def _read(begin: Begin, statement: Runnable, problems: list[str]) -> list[Row]:
    """Return the rows of a statement as they are stored.

    If they cannot be read, append that to ``problems``, and return no rows.
    """
    try:
        with begin() as transaction:
            return transaction.read_unconverted(statement)
    except Damaged as error:
        problems.append(f"a part cannot be read: {error.__cause__}")
        return []


def _of_plan(begin: Begin, uuid: str) -> Iterator[str]:
    try:
        yield from damaged_plans.problems(begin, uuid)
    except PlanNotFound:
        yield "its row cannot be found: an index is damaged"
        return
    try:
        with begin() as transaction:
            found = transaction.read_unconverted(_ATTEMPTS, {"plan_uuid": uuid})
    except Damaged as error:
        yield f"its attempts cannot be read: {error.__cause__}"
        return
    for row in found:
        for wrong in damage.of_row(attempts, row):
            yield f"attempt {row['number']} of action {row['action']}: {wrong}"


def _orphans(begin: Begin) -> Iterator[str]:
    """Yield a sentence for each missing plan or action to which rows of other tables refer."""
    for table, statement in _ORPHANS:
        problems: list[str] = []
        for row in _read(begin, statement, problems):
            name = " ".join(str(value) for value in row.values())
            yield f"{table.name} has rows of {name}, which is missing"
        yield from problems
