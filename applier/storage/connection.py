# SPDX-License-Identifier: Apache-2.0
"""Parses the URL of a database, makes its engine, and sets up each of its connections."""

from __future__ import annotations

import logging
import os

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from applier.errors import ConfigurationError, StoreError
from applier.extras import MissingExtra

ACCEPTED = "sqlite:////PATH, postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE"
#: By kind of database: the default driver, the extra that installs it, and the URL options.
DRIVERS = {
    "postgresql": ("psycopg", "postgresql", {"connect_timeout": "10"}),
    "mysql": ("pymysql", "mysql", {"charset": "utf8mb4"}),
    "mariadb": ("pymysql", "mysql", {"charset": "utf8mb4"}),
}


def parse(connection: str) -> sa.URL:
    """Parse a URL and fill in defaults; raises StoreError.

    ``postgresql://`` means psycopg 3, ``mysql://`` and ``mariadb://`` mean PyMySQL with utf8mb4.
    """
    try:
        url = sa.make_url(connection)
    except (ArgumentError, ValueError) as error:
        raise StoreError(f"[actionplan] connection is not {ACCEPTED}") from error
    backend, _, driver = url.drivername.partition("+")
    if backend == "sqlite":
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise StoreError(f"{connection}: name a file, as in sqlite:////var/lib/plans.db")
        return url
    if backend not in DRIVERS:
        raise StoreError(f"[actionplan] connection: {backend!r} is not one of {ACCEPTED}")
    default, _, options = DRIVERS[backend]
    # SQLAlchemy and the tables treat MariaDB as MySQL.
    name = "mysql" if backend == "mariadb" else backend
    query = url.query if driver not in ("", default) else {**options, **url.query}
    return url.set(drivername=f"{name}+{driver or default}", query=query)


def shown(url: sa.URL) -> str:
    """Return a URL as text, with passwords masked.

    >>> shown(parse("postgresql://plan:secret@db.example/plans?password=secret"))
    'postgresql://plan:***@db.example/plans'
    """
    plain = url.set(drivername=url.get_backend_name(), query={})
    return plain.render_as_string(hide_password=True)


def make_engine(
    url: sa.URL,
    *,
    synchronous: str = "FULL",
    busy_timeout_s: float = 30.0,
    answer_s: int | None = None,
) -> sa.Engine:
    """Make the engine for a URL of :func:`parse`, without connecting.

    The driver does not begin transactions by itself; the caller sends BEGIN. ``synchronous`` and
    ``busy_timeout_s`` are for SQLite. ``answer_s``, the seconds that one statement may take, is for
    servers. Raises StoreError when the driver is missing, and ConfigurationError if ``synchronous``
    is neither FULL nor NORMAL.
    """
    if synchronous not in ("FULL", "NORMAL"):
        raise ConfigurationError(f"[actionplan] synchronous: {synchronous!r} is not FULL or NORMAL")
    # The pool logs errors of connections, which are raised as well.
    log = logging.getLogger("sqlalchemy.pool")
    if log.level == logging.NOTSET:
        log.setLevel(logging.CRITICAL)
    try:
        engine = sa.create_engine(
            url if answer_s is None else _bounded(url, answer_s),
            isolation_level="AUTOCOMMIT",
            pool_recycle=3600,
            # The connections to a file need no limit.
            max_overflow=-1 if url.get_backend_name() == "sqlite" else 10,
        )
    except (ImportError, NoSuchModuleError) as error:
        raise StoreError(_missing(url)) from error
    settings = _settings(url.get_backend_name(), synchronous, busy_timeout_s, answer_s)

    @sa.event.listens_for(engine, "connect")
    def settle(connection: sa.engine.interfaces.DBAPIConnection, _record: object) -> None:
        cursor = connection.cursor()
        for statement in settings:
            cursor.execute(statement)
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # All changes of alembic or SQLAlchemy on a connection are one transaction, unless the
        # connection has an isolation level of its own.
        if "isolation_level" not in connection.get_execution_options():
            connection.exec_driver_sql("BEGIN")

    return engine


def _settings(
    backend: str, synchronous: str, busy_timeout_s: float, answer_s: int | None
) -> tuple[str, ...]:
    """Return the statements that set up a new connection."""
    if backend == "sqlite":
        return (
            # For new files. Pages are small, because a commit writes whole pages for few bytes.
            "PRAGMA page_size = 2048",
            "PRAGMA foreign_keys = ON",
            f"PRAGMA busy_timeout = {int(busy_timeout_s * 1000)}",
            f"PRAGMA synchronous = {synchronous}",
        )
    if backend == "mysql":
        return (
            # Values that do not fit are refused, not cut.
            "SET SESSION sql_mode = 'TRADITIONAL'",
            # The statements of one method read the same snapshot.
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        )
    return () if answer_s is None else (f"SET statement_timeout = {answer_s * 1000}",)


def _bounded(url: sa.URL, answer_s: int) -> sa.URL:
    """Add timeouts, so that the driver notices a dead host; options in the URL override them."""
    seconds, tenth = str(answer_s), str(max(answer_s // 10, 1))
    waits = {
        "psycopg": {
            "tcp_user_timeout": f"{seconds}000",
            "keepalives_idle": seconds,
            "keepalives_interval": tenth,
        },
        "pymysql": {"read_timeout": seconds, "write_timeout": seconds},
    }
    return url.set(query={**waits.get(url.get_driver_name(), {}), **url.query})


def _missing(url: sa.URL) -> str:
    backend, driver = url.get_backend_name(), url.get_driver_name()
    default, extra, _ = DRIVERS.get(backend, (None, None, None))
    if driver != default:
        return f"{shown(url)}: the driver {driver!r} is not installed"
    return f"{shown(url)}: {MissingExtra(f'the driver {driver!r}', str(extra))}"


class SameFile:
    """The identity (device and inode) of the SQLite file that a store has opened.

    SQLite itself goes on using a file that was removed or renamed: its writes would be lost, and a
    new file of that name would be another record.
    """

    def __init__(self, url: sa.URL) -> None:
        self._url = url
        self._opened = self._found()

    def require(self) -> None:
        """Raise StoreError unless the path is still that of the file that was opened."""
        if self._found() != self._opened:
            raise StoreError(
                f"{shown(self._url)}: the file was removed or replaced while it was in use; "
                "put it back, or end the programs that use it"
            )

    def _found(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._url.database or "")
        except OSError:
            return None
        return status.st_dev, status.st_ino
