# SPDX-License-Identifier: Apache-2.0
"""The version of the tables: reads and checks it, creates and upgrades tables.

A new SQLite file gets its tables when it is opened. Everything else is done by ``actionplan db
upgrade``. alembic is imported only to change tables: to open a database, its version is compared
with :data:`REVISIONS`.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from applier.errors import DamagedRecord, StoreError
from applier.storage import lock_holders
from applier.storage.connection import make_engine, parse, shown
from applier.storage.refusals import (
    DatabaseLocked,
    hinted,
    refusal,
    sentence,
    translate_errors,
)
from applier.storage.tables import VERSION_TABLE, metadata, plans

if TYPE_CHECKING:
    from alembic.config import Config

#: All versions of the tables, oldest first. Only the tables of these versions are upgraded. A test
#: says which name fits tables that were edited: its digits are those of a digest of the tables.
REVISIONS = ("0001_62612316",)
#: The folder with the migrations, one for each version.
MIGRATIONS = Path(__file__).with_name("migrations")
#: A set of tables that only Watcher's database contains.
WATCHER = ({"action_plans", "audits"}, {"alembic_version", "goals"})
#: The application id of a SQLite file, by which ``file plans.db`` can identify it.
APPLICATION_ID = 0x41506C6E
#: The seconds to wait while another process keeps a SQLite file or its folder locked.
LONGEST_S = 30.0
#: Never set: used to wait in a way that Ctrl-C interrupts.
_NEVER = threading.Event()


def upgrade(connection: str) -> None:
    """Create the tables of a database, or upgrade them to the newest version.

    Raises StoreError, also while a plan runs: its applier works with the tables as they are.
    """
    url = parse(connection)
    engine = make_engine(url, busy_timeout_s=lock_holders.SOON_S)
    try:
        with translate_errors(url), alone(url):
            if url.get_backend_name() == "sqlite":
                create_file(url, engine)
            with engine.begin() as database:
                found = version(database, url)
                if found not in (None, REVISIONS[-1]):
                    _require_none_running(database, url)
            run_alembic(engine)
    finally:
        engine.dispose()


def _require_none_running(database: sa.Connection, url: sa.URL) -> None:
    query = sa.select(plans.c.uuid).where(plans.c.state.in_(("ONGOING", "CANCELLING")))
    running = database.execute(query).scalars().first()
    if running is not None:
        raise StoreError(
            f"{shown(url)}: plan {running[:8]} runs; pause it and stop its service, with the "
            "ActionPlan that runs it, before the tables are upgraded"
        )


def version(database: sa.Connection, url: sa.URL) -> str | None:
    """Return the version of the tables, None if there are none.

    Raises StoreError for tables of other programs and of unknown versions, and for a SQLite file
    that has the table of plans and no version; DamagedRecord for several versions.
    """
    names = require_ours(database, url)
    if VERSION_TABLE not in names:
        # The database account of a worker has views in place of tables, with its own rows only.
        names |= set(sa.inspect(database).get_view_names())
    found = None
    if VERSION_TABLE in names:
        column: sa.ColumnClause[str] = sa.column("version_num")
        rows = database.execute(sa.select(column).select_from(sa.table(VERSION_TABLE)))
        versions = sorted(set(map(str, rows.scalars())))
        if len(versions) > 1:
            text = f"its tables have {len(versions)} versions, {' and '.join(versions)}"
            raise DamagedRecord(shown(url), [text])
        found = next(iter(versions), None)
    if found is None and plans.name in names and url.get_backend_name() == "sqlite":
        raise StoreError(
            f"{shown(url)} is damaged: the version of its tables is missing; a copy made by "
            "actionplan db backup can take its place"
        )
    if found is not None and found not in REVISIONS:
        raise StoreError(
            f"{shown(url)}: its tables have version {found}, not {REVISIONS[-1]}; to keep its "
            "plans, use 'actionplan export' of the ActionPlan that made it and 'actionplan import' "
            "of this one with a new record"
        )
    return found


def require_ours(database: sa.Connection, url: sa.URL) -> set[str]:
    """Return the names of all tables; raises StoreError if they are Watcher's.

    A SQLite file with tables of any other program is refused as well, because files are not shared.
    """
    names = set(sa.inspect(database).get_table_names())
    whose = "Watcher" if any(tables <= names for tables in WATCHER) else None
    if whose is None and url.get_backend_name() == "sqlite":
        strange = [name for name in names if not name.startswith("actionplan_")]
        whose = "something else" if strange else None
    if whose:
        raise StoreError(
            f"{shown(url)} holds the tables of {whose}; give ActionPlan a database of its own, "
            "and name it in the option connection of [actionplan]"
        )
    return names


def require(database: sa.Connection, url: sa.URL) -> None:
    """Raise StoreError unless the tables have the newest version."""
    found = version(database, url)
    if found != REVISIONS[-1]:
        what = f"of version {found}" if found else "not there yet"
        raise StoreError(f"{shown(url)}: the tables are {what}; run: actionplan db upgrade")


def prepare_file(url: sa.URL, engine: sa.Engine) -> None:
    """Create a SQLite file and its tables if necessary; several processes may do so at once."""
    with alone(url):
        create_file(url, engine)
        with engine.begin() as database:
            is_new = version(database, url) is None
            if not is_new:
                require(database, url)
                require_whole(database, url)
        if is_new:
            run_alembic(engine)


def require_whole(database: sa.Connection, url: sa.URL) -> None:
    """Raise DamagedRecord for the first table that is missing.

    The account of a worker, which has views of some tables, is not refused.
    """
    there = sa.inspect(database).get_table_names()
    missing = [name for name in metadata.tables if name not in there]
    if missing and VERSION_TABLE in there:
        copy = "actionplan db backup" if url.get_backend_name() == "sqlite" else "the server"
        text = f"the table {missing[0]} is missing; a copy made by {copy} can take its place"
        raise DamagedRecord(shown(url), [text])


def create_file(url: sa.URL, engine: sa.Engine) -> None:
    """Create an empty SQLite file in WAL mode, which only its owner may read.

    Call it inside :func:`alone`.
    """
    path = Path(url.database or "")
    try:
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        # Not opened with open(): closing it would release the locks that this process has on the
        # file.
        pass
    except OSError as error:
        text = hinted(f"cannot create the file: {error.strerror}")
        raise StoreError(f"{shown(url)}: {text}") from error
    with engine.connect() as database:
        # The journal mode is stored in the file. To change it, SQLite needs exclusive access, for
        # which it does not wait, whatever its time-out: hence the lock of `alone`.
        driver = database.connection.cursor()
        driver.execute("PRAGMA journal_mode = WAL")
        driver.close()


@contextmanager
def alone(url: sa.URL) -> Iterator[None]:
    """Lock the folder of a SQLite file while the block runs; create a missing folder.

    Other processes that open a file in the folder wait. The lock is on the folder itself, so it
    ends with the process and leaves no file behind. For servers, nothing is done. Raises StoreError
    if the folder cannot be used, or stays locked for :data:`LONGEST_S` seconds.
    """
    if url.get_backend_name() != "sqlite":
        yield
        return
    folder = Path(url.database or "").absolute().parent
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


def _lock(handle: int, folder: Path, url: sa.URL) -> None:
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
        if waited_s - looked_s >= lock_holders.SOON_S:
            holder = lock_holders.of_folder(folder)
            who = holder or "another process holds the lock"
            text = f"{shown(url)}: the folder {folder} is locked; {who}"
            if waited_s >= LONGEST_S or (holder and holder.stopped):
                raise StoreError(text)
            if not looked_s:
                lock_holders.tell_wait(text, LONGEST_S)
            looked_s = waited_s
        _NEVER.wait(0.01)


def run_alembic(engine: sa.Engine) -> None:
    """Upgrade the tables to the newest version.

    That is one transaction, if the database supports transactions for changes of tables.
    """
    # The import takes as long as the rest of a short command.
    from alembic import command

    with engine.begin() as database:
        if engine.dialect.name == "sqlite":
            _write_first(database)
        command.upgrade(alembic_configuration(database), "head")


def _write_first(database: sa.Connection) -> None:
    """Begin the transaction of a SQLite file with a write; wait for another process that writes.

    A transaction that reads first would be refused if another process writes meanwhile. Raises the
    error of the driver if the other process is stopped, or after :data:`LONGEST_S`. A wait is
    logged.
    """
    began, told = time.monotonic(), False
    while True:
        try:
            database.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        except DBAPIError as error:
            holder = lock_holders.of_record(database.engine.url)
            is_stuck = time.monotonic() - began >= LONGEST_S or (holder and holder.stopped)
            if is_stuck or not isinstance(refusal(error, database.dialect), DatabaseLocked):
                raise
            if not told:
                lock_holders.tell_wait(sentence(error, database.engine.url), LONGEST_S)
                told = True
            _NEVER.wait(0.01)
        else:
            return


def alembic_configuration(database: sa.Connection) -> Config:
    """Return the configuration with which alembic changes the tables on a connection."""
    from alembic.config import Config

    configuration = Config()
    configuration.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    configuration.attributes["connection"] = database
    return configuration
