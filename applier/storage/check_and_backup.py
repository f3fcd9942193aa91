# SPDX-License-Identifier: Apache-2.0
"""Checks a whole record on every kind of database, and copies one in a SQLite file.

The record is not changed, and other processes may write to it meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from applier.errors import DamagedRecord, PlanNotFound, StoreError
from applier.storage import damage, event_rows, schema_version, statements
from applier.storage.connection import Connector, Url, parse, shown
from applier.storage.database_errors import Damaged, hinted, translate_errors
from applier.storage.schema import INDEXES, MYSQL, SQLITE, TABLES, VERSION_TABLE, Dialect
from applier.storage.statements import Row, UnreadableValue
from applier.storage.transactions import Transaction, Transactions
from applier.storage.unwritable import readable
from applier.whole_files import sync_folder
from planner.errors import short

Begin = Callable[[], AbstractContextManager[Transaction]]
#: The most problems that SQLite's own check lists, and the most rows without a plan per table.
_MOST = 50
#: The tables whose rows belong to a plan.
_OF_PLANS = (
    *("action", "action_state", "approval", "attempt"),
    *("request", "reservation", "worker_job"),
)
#: The tables whose rows are checked without the plan that they belong to.
_SINGLE = (
    *("approval", "request", "reservation", "service", "turn", "history", "answer"),
    *("event", "subscription", "dead_event", "duration", "worker_job", "worker"),
)
#: Stands for the time of an event, which is checked as a column.
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


def _without(table: str, whole: str, **keys: str) -> str:
    """Select the keys of rows for which another table has no row."""
    same = " AND ".join(f"w.{other} = t.{own}" for own, other in keys.items())
    return f"""
    SELECT DISTINCT {", ".join(keys)} FROM actionplan_{table} AS t
    WHERE NOT EXISTS (SELECT * FROM actionplan_{whole} AS w WHERE {same})
    LIMIT {_MOST}"""


_ORPHANS = (
    *((table, _without(table, "plan", plan="uuid")) for table in _OF_PLANS),
    ("attempt", _without("attempt", "action", plan="plan", action="uuid")),
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
        except Damaged as error:
            return Checked(shown(url), 0, [f"no plan can be read: {error.__cause__}"])


def require_file(url: Url) -> None:
    """Raise StoreError for a SQLite file that does not exist, or that is empty."""
    path = Path(url.database)
    if url.kind != "sqlite":
        return
    if not path.exists():
        raise StoreError(f"{shown(url)}: there is no record yet")
    if path.is_file() and not path.stat().st_size:
        raise StoreError(
            f"{shown(url)}: the file is empty (0 bytes): no record is in it; a copy made by "
            "actionplan db backup can take its place"
        )


def _checked(url: Url) -> Checked:
    with closing(Transactions(readable(url))) as transactions:
        begin = transactions.read
        with begin() as transaction:
            schema_version.require(schema_version.look(transaction, url), url)
            problems = list(_missing_tables(transaction, url.dialect))
            if problems:
                return Checked(shown(url), 0, problems)
            problems += _missing_indexes(transaction, url.dialect)
        problems += _of_database(begin, url.dialect)
        uuids = [row["uuid"] for row in _read(begin, statements.NUMBERS, problems)]
        problems += [f"plan {short(u)}: {wrong}" for u in uuids for wrong in _of_plan(begin, u)]
        problems += _orphans(begin)
        for table in (f"actionplan_{name}" for name in _SINGLE):
            found = _read(begin, f"SELECT * FROM {table}", problems)
            for row in found:
                wrong = list(damage.of_row(table, row)) or _of_form(table, row)
                problems += [f"{table}: {text}" for text in wrong]
            if table == "actionplan_turn" and len(found) != 1:
                problems.append(f"{table} has not exactly one row")
    return Checked(shown(url), len(uuids), problems)


def _missing_tables(transaction: Transaction, dialect: Dialect) -> Iterator[str]:
    """Yield a sentence for each table and column that is missing."""
    there = {(row["table_name"], row["name"]) for row in transaction.read(dialect.columns)}
    tables = {table for table, _ in there}
    for table, columns in TABLES.items():
        if table not in tables:
            yield f"the table {table} is missing"
            continue
        for column in columns:
            if (table, column) not in there:
                yield f"the column {column} of {table} is missing"


def _missing_indexes(transaction: Transaction, dialect: Dialect) -> Iterator[str]:
    """Yield a sentence for each missing index, and one if there is more than one version."""
    there = {(row["name"], row["table_name"]) for row in transaction.read(dialect.indexes)}
    for name, table in sorted({*INDEXES} - there):
        yield f"the index {name} of {table} is missing"
    [row] = transaction.read(f"SELECT count(*) AS number FROM {VERSION_TABLE}")
    if row["number"] != 1:
        yield f"{VERSION_TABLE} has {row['number']} rows in place of one"


def _of_form(table: str, row: Row) -> list[str]:
    """Return what is wrong with the JSON in the columns of a row whose columns are sound."""
    try:
        if table == "actionplan_event":
            event_rows.event_of({**row, "at": _ANY_TIME, "name": None, "action_type": None})
        elif table == "actionplan_subscription":
            event_rows.subscription_of(row)
        elif table == "actionplan_dead_event":
            event_rows.dead_of(row)
    except UnreadableValue as reason:
        return [f"{row.get('number', row.get('name'))}: {reason}"]
    return []


def _of_database(begin: Begin, dialect: Dialect) -> Iterator[str]:
    """Yield the problems that the database's own check of its files reports.

    PostgreSQL has no such check.
    """
    try:
        with begin() as transaction:
            if dialect is SQLITE:
                for row in transaction.read(f"PRAGMA integrity_check({_MOST})"):
                    if row["integrity_check"] != "ok":
                        yield f"integrity: {' '.join(row['integrity_check'].split())}"
            elif dialect is MYSQL:
                for row in transaction.read(f"CHECK TABLE {', '.join(TABLES)}"):
                    if row["Msg_type"] != "note" and row["Msg_text"] != "OK":
                        yield f"integrity: {row['Table']}: {row['Msg_text']}"
    except Damaged as error:
        yield f"integrity: {error.__cause__}"


def _read(begin: Begin, statement: str, problems: list[str]) -> list[Row]:
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
        yield from damage.problems(begin, uuid)
    except PlanNotFound:
        yield "its row cannot be found: an index is damaged"
        return
    try:
        with begin() as transaction:
            found = transaction.read_unconverted(statements.SHORT_ATTEMPTS, {"plan_uuid": uuid})
    except Damaged as error:
        yield f"its attempts cannot be read: {error.__cause__}"
        return
    for row in found:
        for wrong in damage.of_row("actionplan_attempt", row):
            yield f"attempt {row['number']} of action {row['action']}: {wrong}"


def _orphans(begin: Begin) -> Iterator[str]:
    """Yield a sentence for each missing plan or action to which rows of other tables refer."""
    for table, statement in _ORPHANS:
        problems: list[str] = []
        for row in _read(begin, statement, problems):
            name = " ".join(str(value) for value in row.values())
            yield f"actionplan_{table} has rows of {name}, which is missing"
        yield from problems


#: How a record on a server is copied, by kind of database.
_PROGRAMS = {
    "postgresql": "pg_dump --format=custom --file=FILE",
    "mysql": "mariadb-dump --single-transaction --result-file=FILE",
}


def backup(connection: str, target: str) -> None:
    """Write a copy of the record to a new file that only its owner may read.

    The copy is a snapshot: it has all changes up to one time. Writers do not wait for it. Raises
    StoreError, also if the file exists, and DamagedRecord if SQLite finds damage in the copy; then
    no new file is left behind.
    """
    url, path = parse(connection), Path(target)
    if program := _PROGRAMS.get(url.kind):
        raise StoreError(
            f"{shown(url)}: a record on a server is copied by a program of the server: "
            f"{program} {url.database}"
        )
    require_file(url)
    if os.path.lexists(path):
        raise StoreError(f"{target} exists already: name a new file")
    fresh = path.with_name(f".new-{uuid4().hex}")
    try:
        fresh.touch(mode=0o600, exist_ok=False)
        with translate_errors(url):
            _copy(readable(url), fresh, target)
            _require_sound(fresh, url)
        _rename(fresh, path)
    except OSError as reason:
        raise _not_copied(target, reason.strerror or str(reason)) from reason
    finally:
        for name in (fresh, f"{fresh}-journal"):
            with suppress(OSError):
                os.unlink(name)


def _rename(fresh: Path, path: Path) -> None:
    """Give a file its name on the disk; raises OSError, also if there is a file of that name."""
    # A rename replaces a file that has been made meanwhile: so the name is taken first. A link
    # would do, but file systems of USB sticks have none.
    path.touch(mode=0o600, exist_ok=False)
    try:
        os.replace(fresh, path)
    except OSError:
        os.unlink(path)
        raise
    sync_folder(path.parent)


def _copy(connector: Connector, fresh: Path, target: str) -> None:
    with closing(connector.open()) as source, closing(sqlite3.connect(fresh)) as copy:
        try:
            source.backup(copy)
            # Without a write-ahead log, the copy is one file.
            copy.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as reason:
            raise _not_copied(target, str(reason)) from reason
    handle = os.open(fresh, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _require_sound(copied: Path, url: Url) -> None:
    """Raise DamagedRecord if SQLite finds damage in a copy, which has the pages of the record."""
    with closing(sqlite3.connect(copied)) as copy:
        try:
            [(found,)] = copy.execute("PRAGMA integrity_check(1)")
        except sqlite3.DatabaseError as reason:
            found = str(reason)
    if found != "ok":
        text = f"{' '.join(found.split())}; no copy was made; actionplan db check says where"
        raise DamagedRecord(shown(url), [text])


def _not_copied(target: str, why: str) -> StoreError:
    return StoreError(f"{target} cannot be written, no copy was made: {hinted(why)}")
