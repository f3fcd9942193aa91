"""From the URL of a database to an engine, and from its errors to sentences.

Passwords never stand in a sentence: a URL is shown without password and options.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from oslo_db.exception import (  # type: ignore[import-untyped]
    DBConnectionError,
    DBError,
    DBInvalidUnicodeParameter,
)
from oslo_db.sqlalchemy.engines import create_engine  # type: ignore[import-untyped]
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError, SQLAlchemyError

from applier.errors import ConfigurationError, StoreError

ACCEPTED = "sqlite:////PATH, postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE"
#: Per kind of database: the driver where the URL names none, the extra that installs it, options.
DRIVERS = {
    "postgresql": ("psycopg", "postgresql", {"connect_timeout": "10"}),
    "mysql": ("pymysql", "mysql", {"charset": "utf8mb4"}),
    "mariadb": ("pymysql", "mysql", {"charset": "utf8mb4"}),
}
#: How a database, or what stands before it, refuses.
REFUSALS = (DBError, DBInvalidUnicodeParameter, SQLAlchemyError, sqlite3.Error)
#: What drivers say when there is nobody at the other end, or not yet.
UNREACHABLE = (
    r"onnection refused|timeout expired|timed out|No route|unreachable|reset by peer|"
    r"closed the connection|starting up|shutting down|resolve host|Name or service"
)
#: What a database says, and what helps. The first that fits counts.
HINTS = (
    (r"disk is full|No space left|disk full", "free some space there"),
    (
        r"disk I/O error",
        "free some space there; if there is enough, the disk has failed: see the system's log",
    ),
    (r"file is not a database", "name another file in [actionplan] connection"),
    (
        r"unable to open|readonly|read-only|Read-only|Permission denied",
        "check the rights on the file and on its folder",
    ),
    (r"database is locked", "another process has been writing to it for too long"),
    (r"\bNUL\b", "take the NUL character out of the plan"),
    (r"password|Access denied|authentication", "check [actionplan] connection"),
    (
        r'Unknown database|database ".*" does not exist',
        "create the database, or check [actionplan] connection",
    ),
    (r"too long|out of range", "the value does not fit into the record"),
)


def parse(connection: str) -> sa.URL:
    """Read a URL and fill in what it leaves open; raises StoreError.

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
    # oslo.db and the tables know MariaDB by the name of MySQL.
    name = "mysql" if backend == "mariadb" else backend
    query = url.query if driver not in ("", default) else {**options, **url.query}
    return url.set(drivername=f"{name}+{driver or default}", query=query)


def shown(url: sa.URL) -> str:
    """Write a URL for people.

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
    """Make the engine of a URL that :func:`parse` gave; nothing is connected yet.

    oslo.db makes it: its filters name the errors of every driver alike, and its engines notice
    connections that broke. The logs are kept down, because what they have to say is raised anyway.
    ``synchronous`` and ``busy_timeout_s`` are for SQLite, ``answer_s`` (how long a server may take
    for one statement) for servers. Raises StoreError when the driver is missing, ConfigurationError
    for another word than FULL and NORMAL.
    """
    if synchronous not in ("FULL", "NORMAL"):
        raise ConfigurationError(f"[actionplan] synchronous: {synchronous!r} is not FULL or NORMAL")
    for log in map(logging.getLogger, ("oslo_db", "sqlalchemy.pool")):
        if log.level == logging.NOTSET:
            log.setLevel(logging.CRITICAL)
    backend = url.get_backend_name()
    try:
        engine: sa.Engine = create_engine(
            url if answer_s is None else _bounded(url, answer_s),
            sqlite_fk=True,
            mysql_sql_mode="TRADITIONAL",
            connection_debug=-1,
            thread_checkin=False,
            max_retries=0,
        )
    except (ImportError, NoSuchModuleError) as error:
        raise StoreError(_missing(url)) from error
    settings = {
        "sqlite": (
            f"PRAGMA busy_timeout = {int(busy_timeout_s * 1000)}",
            f"PRAGMA synchronous = {synchronous}",
        ),
        # What a method reads by two statements is of one moment.
        "mysql": ("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",),
    }
    if answer_s is not None:
        settings["postgresql"] = (f"SET statement_timeout = {answer_s * 1000}",)

    @sa.event.listens_for(engine, "connect")
    def settle(connection: sa.engine.interfaces.DBAPIConnection, _record: object) -> None:
        cursor = connection.cursor()
        for statement in settings.get(backend, ()):
            cursor.execute(statement)
        cursor.close()
        # PostgreSQL forgets a setting whose transaction does not end well.
        connection.commit()

    return engine


def _bounded(url: sa.URL, answer_s: int) -> sa.URL:
    """Let the driver notice a host that is gone; what the URL itself says counts more."""
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


@contextmanager
def translate_errors(url: sa.URL) -> Iterator[None]:
    """Turn whatever the database refuses inside into a StoreError with one sentence.

    A Ctrl-C stays one, whatever comes in its wake: its connection is given up, and oslo.db, drivers
    and SQLAlchemy's own assertions each complain of that in their way.
    """
    try:
        yield
    except Exception as error:
        if interrupt := _interrupt(error):
            raise interrupt from None
        if isinstance(error, REFUSALS):
            raise StoreError(sentence(error, url)) from error
        raise


def _interrupt(error: BaseException | None) -> BaseException | None:
    """Give the Ctrl-C in whose wake an error came, if there was one."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def sentence(error: BaseException, url: sa.URL) -> str:
    """Say what went wrong with the database of a URL, and what would help."""
    text = _words(error)
    if url.password:
        text = text.replace(str(url.password), "***")
    told = hinted(text)
    if told == text and lost(error):
        told += "; is the server running? see [actionplan] connection"
    return f"{shown(url)}: {told}"


def hinted(text: str) -> str:
    """Add what would help, if that is known.

    >>> hinted("cannot create the file: No space left on device")
    'cannot create the file: No space left on device; free some space there'
    """
    hint = next((hint for what, hint in HINTS if re.search(what, text)), None)
    return f"{text}; {hint}" if hint else text


def lost(error: BaseException) -> bool:
    """Say whether there is no connection, so that a later try may have one.

    oslo.db knows connections that broke, but not every one that was never made.
    """
    return isinstance(error, DBConnectionError) or (
        isinstance(error, OperationalError) and re.search(UNREACHABLE, _words(error)) is not None
    )


def _words(error: BaseException) -> str:
    """The first line of what the driver said, without the statement that SQLAlchemy adds."""
    cause: object = error
    for link in ("inner_exception", "orig"):
        cause = getattr(cause, link, None) or cause
    # MySQL's errors are (number, text).
    arguments = getattr(cause, "args", ())
    lines = str(arguments[-1] if arguments else cause).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(cause).__name__
