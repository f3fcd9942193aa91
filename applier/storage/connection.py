# SPDX-License-Identifier: Apache-2.0
"""Parses the URL of a database, and opens connections to it by the driver of its kind."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from applier.errors import StoreError
from applier.extras import MissingExtra
from applier.storage.schema import MYSQL, POSTGRESQL, SQLITE, Dialect

ACCEPTED = "sqlite:////PATH, postgresql://USER@HOST/DATABASE or mysql://USER@HOST/DATABASE"
#: By kind of database: its dialect, the module of its driver, and the extra that installs that.
DRIVERS = {
    "sqlite": (SQLITE, "sqlite3", None),
    "postgresql": (POSTGRESQL, "psycopg", "postgresql"),
    "mysql": (MYSQL, "pymysql", "mysql"),
}
_URL = re.compile(
    r"(?P<kind>\w+)(?:\+(?P<driver>\w+))?://"
    r"(?:(?P<user>[^:/@]*)(?::(?P<password>[^@]*))?@)?"
    r"(?:\[(?P<ipv6>[^/?]+)\]|(?P<host>[^/:?]*))(?::(?P<port>[0-9]+))?"
    r"(?:/(?P<database>[^?]*))?(?:\?(?P<options>.*))?",
    re.DOTALL,
)
#: The options for TLS of PyMySQL, and what they are called in its mapping of them.
_TLS = {
    **{f"ssl_{name}": name for name in ("ca", "capath", "cert", "key", "cipher")},
    "ssl_key_password": "password",
    "ssl_verify_cert": "verify_mode",
    **dict.fromkeys(("ssl_verify_identity", "ssl_check_hostname"), "check_hostname"),
}


class Url(NamedTuple):
    """The parts of the URL of a database, without their escapes; ``kind`` is a key of DRIVERS."""

    kind: str
    user: str | None
    password: str | None
    host: str | None
    port: int | None
    #: The name of a database, or the path of a file.
    database: str
    #: Options of the driver.
    options: dict[str, str]

    @property
    def dialect(self) -> Dialect:
        """How this kind of database spells statements."""
        return DRIVERS[self.kind][0]

    def with_password(self) -> str:
        """Return the URL as text, which must not be shown to anybody.

        >>> parse("mysql://plan:s%40cret@[::1]/plans?ssl_ca=x").with_password()
        'mysql://plan:s%40cret@[::1]/plans?ssl_ca=x'
        """
        options = f"?{urlencode(self.options)}" if self.options else ""
        return f"{self.text(quote(self.password or '', safe=''))}{options}"

    def text(self, password: str) -> str:
        """Return the URL without its options, and with a text in place of its password."""
        account = "" if self.user is None else quote(self.user, safe="")
        account += "" if self.password is None else f":{password}"
        host = f"[{self.host}]" if ":" in (self.host or "") else self.host or ""
        port = f":{self.port}" if self.port else ""
        return f"{self.kind}://{account}{'@' if account else ''}{host}{port}/{self.database}"


def parse(connection: str) -> Url:
    """Parse a URL; raises StoreError. ``mariadb://`` means the same as ``mysql://``."""
    found = _URL.fullmatch(connection)
    if found is None:
        raise StoreError(f"[actionplan] connection is not {ACCEPTED}")
    kind = "mysql" if found["kind"] == "mariadb" else found["kind"]
    if kind not in DRIVERS:
        raise StoreError(f"[actionplan] connection: {kind!r} is not one of {ACCEPTED}")
    driver = DRIVERS[kind][1].replace("sqlite3", "pysqlite")  # its name in URLs of SQLAlchemy
    if found["driver"] not in (None, driver):
        text = f"{found['driver']!r} is not the driver for {kind}, which is {driver!r}"
        raise StoreError(f"[actionplan] connection: {text}")
    path = found["database"] or ""
    if kind == "sqlite" and (found["host"] or path in ("", ":memory:") or path.startswith("file:")):
        raise StoreError(f"{connection}: name a file, as in sqlite:////var/lib/plans.db")
    user, password = (found[part] and unquote(found[part]) for part in ("user", "password"))
    return Url(
        kind=kind,
        user=user,
        password=password,
        host=found["ipv6"] or found["host"] or None,
        port=int(found["port"]) if found["port"] else None,
        database=path,
        options=dict(parse_qsl(found["options"] or "", keep_blank_values=True)),
    )


def shown(url: Url) -> str:
    """Return a URL as text, with its password masked and without its options.

    >>> shown(parse("postgresql://plan:secret@db.example/plans?password=secret"))
    'postgresql://plan:***@db.example/plans'
    """
    return url.text("***")


class Connector:
    """Opens connections to the database of a URL; the caller begins their transactions.

    ``busy_timeout_s`` is for SQLite. ``answer_s``, the seconds that one statement may take, is for
    servers; with it, the driver notices a dead host. Raises StoreError when the driver is missing.
    """

    def __init__(
        self,
        url: Url,
        *,
        busy_timeout_s: float = 30.0,
        answer_s: int | None = None,
    ) -> None:
        self.url, self.dialect = url, url.dialect
        _, driver, extra = DRIVERS[url.kind]
        try:
            #: The module of the driver.
            self.driver: Any = import_module(driver)
        except ImportError as error:
            missing = MissingExtra(f"the driver {driver!r}", str(extra))
            raise StoreError(f"{shown(url)}: {missing}") from error
        self._answer_s = answer_s
        self._settings = _settings(self.dialect, busy_timeout_s, answer_s)

    def open(self) -> Any:
        """Return a new connection of the driver, on which each statement is committed at once.

        Raises an error of the driver, and StoreError for an option that it does not have.
        """
        connect = {"sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql}[self.url.kind]
        opened = connect(self.driver, self.url, self._answer_s)
        try:
            cursor = opened.cursor()
            for statement in self._settings:
                cursor.execute(statement)
            cursor.close()
        except BaseException:
            opened.close()
            raise
        return opened


def _settings(dialect: Dialect, busy_timeout_s: float, answer_s: int | None) -> tuple[str, ...]:
    """Return the statements that set up a new connection."""
    if dialect is SQLITE:
        return (
            # For new files. Pages are small, because a commit writes whole pages for few bytes.
            "PRAGMA page_size = 2048",
            "PRAGMA foreign_keys = ON",
            f"PRAGMA busy_timeout = {int(busy_timeout_s * 1000)}",
            # What is recorded survives a loss of power.
            "PRAGMA synchronous = FULL",
        )
    if dialect is MYSQL:
        return (
            # Values that do not fit are refused, not cut; and the SQL of the other databases.
            "SET SESSION sql_mode = 'TRADITIONAL,ANSI_QUOTES,PIPES_AS_CONCAT'",
            # The statements of one method read the same snapshot.
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        )
    return () if answer_s is None else (f"SET statement_timeout = {answer_s * 1000}",)


def _sqlite(driver: Any, url: Url, _: int | None) -> Any:
    name = f"file:{quote(url.database)}?{urlencode(url.options)}" if url.options else url.database
    return driver.connect(
        name, uri=bool(url.options), isolation_level=None, check_same_thread=False
    )


def _postgresql(driver: Any, url: Url, answer_s: int | None) -> Any:
    waits = {"connect_timeout": "10"}
    if answer_s is not None:
        waits |= {"tcp_user_timeout": f"{answer_s}000", "keepalives_idle": str(answer_s)}
        waits |= {"keepalives_interval": str(max(answer_s // 10, 1))}
    given = _given(url, dbname=url.database)
    return driver.connect(autocommit=True, **{**waits, **given, **url.options})


def _mysql(driver: Any, url: Url, answer_s: int | None) -> Any:
    options: dict[str, Any] = {"charset": "utf8mb4"}
    if answer_s is not None:
        options |= {"read_timeout": answer_s, "write_timeout": answer_s}
    options |= _given(url, database=url.database) | url.options
    # As a mapping: only then, an authority in it means that the server has to have a certificate.
    tls = {meant: options.pop(name) for name, meant in _TLS.items() if name in options}
    if "check_hostname" in tls:
        tls["check_hostname"] = tls["check_hostname"] != "false"
    # An UPDATE counts the rows that it has found, not only those that have other values now.
    flags = driver.constants.CLIENT.FOUND_ROWS
    try:
        for name in ("connect_timeout", "read_timeout", "write_timeout"):
            if name in options:
                options[name] = int(options[name])
        return driver.connect(autocommit=True, client_flag=flags, ssl=tls or None, **options)
    except (TypeError, ValueError, OSError) as error:
        raise StoreError(f"{shown(url)}: its options are not accepted: {error}") from error


def _given(url: Url, **database: str) -> dict[str, Any]:
    """Return the parameters of a server that a URL gives."""
    parts = {"host": url.host, "port": url.port, "user": url.user, "password": url.password}
    return {name: value for name, value in {**parts, **database}.items() if value}


class SameFile:
    """The identity (device and inode) of the SQLite file that a store has opened.

    SQLite itself goes on using a file that was removed or renamed: its writes would be lost, and a
    new file of that name would be another record.
    """

    def __init__(self, url: Url) -> None:
        self._url = url
        self._opened: tuple[int, int] | None = None
        self.require()

    def require(self) -> None:
        """Raise StoreError unless the path is still that of the file that was opened."""
        found = None
        with suppress(OSError):
            status = os.stat(self._url.database)
            found = status.st_dev, status.st_ino
        self._opened = self._opened or found
        if found is None or found != self._opened:
            raise StoreError(
                f"{shown(self._url)}: the file was removed or replaced while it was in use; "
                "put it back, or end the programs that use it"
            )
