# SPDX-License-Identifier: Apache-2.0
"""Makes the engine for the URL of a database, and sets up each of its connections."""

from __future__ import annotations

import logging

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchModuleError

from applier.errors import ConfigurationError, StoreError
from applier.storage.urls import DRIVERS, shown


def make_engine(
    url: sa.URL,
    *,
    synchronous: str = "FULL",
    busy_timeout_s: float = 30.0,
    answer_s: int | None = None,
) -> sa.Engine:
    """Make the engine for a URL of :func:`applier.storage.urls.parse`, without connecting.

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
    """Add timeouts, so that the driver notices a dead host; options of the URL are preferred."""
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
    return (
        f"{shown(url)}: the driver {driver!r} is not installed; "
        f"to install it: pip install actionplan[{extra}]"
    )
