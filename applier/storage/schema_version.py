# SPDX-License-Identifier: Apache-2.0
"""The version of the tables: reads and checks it, creates and upgrades tables.

A new SQLite file gets its tables when it is opened. Everything else is done by ``actionplan db
upgrade``. New tables are made by ``schema.sql``, those of an older version are changed by
:data:`UPGRADES`.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from applier.errors import DamagedRecord, StoreError
from applier.storage import database_errors
from applier.storage.connection import Connector, Url, parse, shown
from applier.storage.database_errors import (
    DatabaseLocked,
    hinted,
    refusal,
    sentence,
    translate_errors,
)
from applier.storage.schema import TABLES, VERSION_TABLE
from applier.storage.transactions import Transaction, Transactions

#: All versions of the tables, oldest first. Only the tables of these versions are upgraded. A test
#: says which name fits tables that were edited: its digits are those of a digest of the tables.
REVISIONS = ("0001_73b56f9d",)
#: By version, except the first: the statements that make its tables of those of the version before
#: it, in the form of ``schema.sql``.
UPGRADES: Mapping[str, str] = {}
#: A set of tables that only Watcher's database contains.
WATCHER = ({"action_plans", "audits"}, {"alembic_version", "goals"})
#: The application id of a SQLite file, by which ``file plans.db`` can identify it.
APPLICATION_ID = 0x41506C6E
#: The seconds to wait while another process keeps a SQLite file or its folder locked.
LONGEST_S = 30.0
_RUNNING = "SELECT uuid FROM actionplan_plan WHERE state IN ('ONGOING', 'CANCELLING')"
_VERSIONS = f"SELECT version_num FROM {VERSION_TABLE}"
_ADD_VERSION = f"INSERT INTO {VERSION_TABLE} (version_num) VALUES (:version)"
_SET_VERSION = f"UPDATE {VERSION_TABLE} SET version_num = :version"
#: Never set: used to wait in a way that Ctrl-C interrupts.
_NEVER = threading.Event()


def upgrade(connection: str) -> None:
    """Create the tables of a database, or upgrade them to the newest version.

    Raises StoreError, also while a plan runs: its applier works with the tables as they are.
    """
    url = parse(connection)
    connector = Connector(url, busy_timeout_s=database_errors.SOON_S)
    with translate_errors(url), alone(url), closing(Transactions(connector)) as transactions:
        if url.kind == "sqlite":
            create_file(connector)
        with _writing(transactions) as transaction:
            version = look(transaction, url).version
            if version is None:
                _create(transaction, url)
            elif version != REVISIONS[-1]:
                _require_none_running(transaction, url)
                for newer in REVISIONS[REVISIONS.index(version) + 1 :]:
                    for statement in url.dialect.spelt(UPGRADES[newer]):
                        transaction.write(statement, {})
                    transaction.write(_SET_VERSION, {"version": newer})


def _require_none_running(transaction: Transaction, url: Url) -> None:
    running = transaction.read(_RUNNING)
    if running:
        raise StoreError(
            f"{shown(url)}: plan {running[0]['uuid'][:8]} runs; pause it and stop its service, "
            "with the ActionPlan that runs it, before the tables are upgraded"
        )


class Found(NamedTuple):
    """The version of the tables of a database, None if there are none, and the names of all."""

    version: str | None
    tables: Set[str]


def look(transaction: Transaction, url: Url) -> Found:
    """Return which tables a database has.

    Raises StoreError for tables of other programs and of unknown versions, and for a SQLite file
    that has the table of plans and no version; DamagedRecord for several versions.
    """
    rows = transaction.read(url.dialect.tables)
    is_view = {row["name"]: row["is_view"] for row in rows}
    tables = {name for name, view in is_view.items() if not view}
    _require_ours(tables, url)
    version = None
    # The database account of a worker has views in place of tables, with its own rows only.
    if VERSION_TABLE in is_view:
        versions = sorted({str(row["version_num"]) for row in transaction.read(_VERSIONS)})
        if len(versions) > 1:
            text = f"its tables have {len(versions)} versions, {' and '.join(versions)}"
            raise DamagedRecord(shown(url), [text])
        version = next(iter(versions), None)
    if version is None and "actionplan_plan" in tables and url.kind == "sqlite":
        raise StoreError(
            f"{shown(url)} is damaged: the version of its tables is missing; a copy made by "
            "actionplan db backup can take its place"
        )
    if version is not None and version not in REVISIONS:
        raise StoreError(
            f"{shown(url)}: its tables have version {version}, not {REVISIONS[-1]}; to keep its "
            "plans, use 'actionplan export' of the ActionPlan that made it and 'actionplan import' "
            "of this one with a new record"
        )
    return Found(version, tables)


def _require_ours(tables: Set[str], url: Url) -> None:
    """Raise StoreError if tables are Watcher's, and in a SQLite file those of any other program.

    Files are not shared.
    """
    whose = "Watcher" if any(some <= tables for some in WATCHER) else None
    if whose is None and url.kind == "sqlite":
        strange = [name for name in tables if not name.startswith("actionplan_")]
        whose = "something else" if strange else None
    if whose:
        raise StoreError(
            f"{shown(url)} holds the tables of {whose}; give ActionPlan a database of its own, "
            "and name it in the option connection of [actionplan]"
        )


def require(found: Found, url: Url) -> None:
    """Raise StoreError unless the tables have the newest version."""
    if found.version != REVISIONS[-1]:
        what = f"of version {found.version}" if found.version else "not there yet"
        raise StoreError(f"{shown(url)}: the tables are {what}; run: actionplan db upgrade")


def require_whole(found: Found, url: Url) -> None:
    """Raise as :func:`require`, and DamagedRecord for the first table that is missing.

    The account of a worker, which has views of some tables, is not refused.
    """
    require(found, url)
    missing = [name for name in TABLES if name not in found.tables]
    if missing and VERSION_TABLE in found.tables:
        copy = "actionplan db backup" if url.kind == "sqlite" else "the server"
        text = f"the table {missing[0]} is missing; a copy made by {copy} can take its place"
        raise DamagedRecord(shown(url), [text])


def prepare_file(transactions: Transactions) -> None:
    """Create a SQLite file and its tables if necessary; several processes may do so at once."""
    url = transactions.connector.url
    with alone(url):
        create_file(transactions.connector)
        with transactions.read() as transaction:
            found = look(transaction, url)
        if found.version is not None:
            require_whole(found, url)
            return
        with _writing(transactions) as transaction:
            _create(transaction, url)


def create_file(connector: Connector) -> None:
    """Create an empty SQLite file in WAL mode, which only its owner may read.

    Call it inside :func:`alone`.
    """
    url = connector.url
    try:
        Path(url.database).touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        # Not opened with open(): closing it would release the locks that this process has on the
        # file.
        pass
    except OSError as error:
        text = hinted(f"cannot create the file: {error.strerror}")
        raise StoreError(f"{shown(url)}: {text}") from error
    try:
        with closing(connector.open()) as driver:
            # The journal mode is stored in the file. To change it, SQLite needs exclusive access,
            # for which it does not wait, whatever its time-out: hence the lock of `alone`.
            driver.execute("PRAGMA journal_mode = WAL")
    except connector.driver.Error as error:
        raise refusal(error, connector.driver) from error


@contextmanager
def alone(url: Url) -> Iterator[None]:
    """Lock the folder of a SQLite file while the block runs; create a missing folder.

    Other processes that open a file in the folder wait. The lock is on the folder itself, so it
    ends with the process and leaves no file behind. For servers, nothing is done. Raises StoreError
    if the folder cannot be used, or stays locked for :data:`LONGEST_S` seconds.
    """
    if url.kind != "sqlite":
        yield
        return
    folder = Path(url.database).absolute().parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        text = hinted(f"cannot use the folder {folder}: {error.strerror}")
        raise StoreError(f"{shown(url)}: {text}") from error
    try:
        _lock(handle, folder, url)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path, url: Url) -> None:
    """Lock an open folder; wait for another process that has locked it, and log that soon.

    Raises StoreError, which names that process, if it is stopped, or after :data:`LONGEST_S`.
    """
    began, looked_s = time.monotonic(), 0.0
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited_s = time.monotonic() - began
        else:
            return
        if waited_s - looked_s >= database_errors.SOON_S:
            holder = database_errors.folder_holder(folder)
            who = holder or "another process holds the lock"
            text = f"{shown(url)}: the folder {folder} is locked; {who}"
            if waited_s >= LONGEST_S or (holder and holder.stopped):
                raise StoreError(text)
            if not looked_s:
                database_errors.tell_wait(text, LONGEST_S)
            looked_s = waited_s
        _NEVER.wait(0.01)


@contextmanager
def _writing(transactions: Transactions) -> Iterator[Transaction]:
    """Begin to write; wait for another process that writes to a SQLite file.

    Raises the refusal if the other process is stopped, or after :data:`LONGEST_S`. A wait is
    logged.
    """
    url, began, told = transactions.connector.url, time.monotonic(), False
    with ExitStack() as stack:
        while True:
            try:
                transaction = stack.enter_context(transactions.write())
            except DatabaseLocked as error:
                holder = database_errors.lock_holder(url)
                if time.monotonic() - began >= LONGEST_S or (holder and holder.stopped):
                    raise
                if not told:
                    database_errors.tell_wait(sentence(error, url), LONGEST_S)
                    told = True
                _NEVER.wait(0.01)
            else:
                break
        yield transaction


def _create(transaction: Transaction, url: Url) -> None:
    """Create the tables of the newest version."""
    if url.kind == "sqlite":
        transaction.write(f"PRAGMA application_id = {APPLICATION_ID}", {})
    for statement in url.dialect.creation():
        transaction.write(statement, {})
    transaction.write(_ADD_VERSION, {"version": REVISIONS[-1]})
