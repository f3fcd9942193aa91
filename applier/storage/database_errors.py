# SPDX-License-Identifier: Apache-2.0
"""Classifies the errors of databases and connections, and describes each in one sentence.

No sentence contains a password. That of a lock names the process that holds it, from the kernel's
table of locks (``/proc/locks`` of Linux); none is found on other systems, and outside of this
container.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from applier.errors import ApplierError, DamagedRecord, StoreError, interrupt_in
from applier.storage.connection import Url, shown
from planner.errors import PlannerError, shortened

#: Texts in the errors of drivers which mean that the server does not answer, or not yet.
UNREACHABLE = (
    r"onnection refused|timeout expired|timed out|No route|unreachable|reset by peer|"
    r"closed the connection|starting up|shutting down|resolve host|Name or service"
)
#: Error numbers of MySQL for a server that does not answer, or has closed the connection.
MYSQL_LOST = frozenset({1047, 1927, 2002, 2003, 2006, 2013})
#: SQLSTATEs and MySQL error numbers of deadlocks: the transaction was rolled back and can be
#: repeated.
DEADLOCKS = frozenset({"40P01", "40001", 1020, 1205, 1213})
#: The messages of SQLite about a file that another process has locked. The second one is that of a
#: read for which another process was in the middle of a commit for ten seconds.
LOCKED = r"database is locked|locking protocol"
_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL})
#: Texts in the errors of SQLite which mean that a part of the file is damaged or missing.
_DAMAGED = r"malformed|Could not decode|no such table"
#: SQLSTATEs and MySQL error numbers of a table or an index that is missing or damaged.
_DAMAGES = frozenset({"42P01", "XX001", "XX002", 1034, 1146, 1194, 1195, 1712, 1932})
#: The texts in such errors, and in that of psycopg about a time that Python does not have.
_DAMAGED_TABLE = (
    r"relation .* does not exist|Table .* doesn't exist|marked as crashed|"
    r"Index .* is corrupted|Incorrect key file|invalid page|timestamp too"
)
#: With fewer bytes left, a disk counts as full: SQLite needs a file of 32 KiB beside the record.
_LEAST_ROOM = 64 * 1024
#: Maps texts in error messages to hints for the user; the first that matches is used.
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
    (
        _DAMAGED,
        "actionplan db check says where; a copy made by actionplan db backup can take its place",
    ),
    (
        _DAMAGED_TABLE,
        "actionplan db check says where; a copy made by a program of the server can take its place",
    ),
    (LOCKED, "another process has been writing to it for too long"),
    (r"\bNUL\b", "take the NUL character out of the plan"),
    (r"password|Access denied|authentication", "check [actionplan] connection"),
    (
        r'Unknown database|database ".*" does not exist',
        "create the database, or check [actionplan] connection",
    ),
    (r"too long|too large|out of range", "the value does not fit into the record"),
)


class Refused(Exception):
    """A transaction failed; ``__cause__`` is the error of the driver."""


class ConnectionLost(Refused):
    """There is no connection to the server, or it was lost: a later attempt may succeed."""


class Deadlock(Refused):
    """The transaction was rolled back because of a deadlock, and can be repeated."""


class DatabaseLocked(Refused):
    """Another process has locked a SQLite file; the transaction has not begun."""


class Damaged(Refused):
    """A part of the record cannot be read: pages or bytes are wrong, or a table is missing."""


class Duplicate(Refused):
    """A row violates a constraint: its key exists already."""


def refusal(error: BaseException, driver: Any, connection: Any = None) -> Refused:
    """Return the kind of Refused for an error of a driver; the caller raises it.

    ``driver`` is the module, ``connection`` is its connection, if there is one.
    """
    codes = {getattr(error, "sqlstate", None), *error.args[:1]}
    if codes & DEADLOCKS:
        return Deadlock(error)
    if isinstance(error, sqlite3.OperationalError) and _is_busy(error):
        return DatabaseLocked(error)
    if lost(error) or _is_closed(connection):
        return ConnectionLost(error)
    if is_damage(error):
        return Damaged(error)
    if isinstance(error, driver.IntegrityError):
        return Duplicate(error)
    return Refused(error)


def _is_closed(connection: Any) -> bool:
    """Return whether a driver has given up a connection; that of SQLite never does."""
    is_open = getattr(connection, "open", True)  # of PyMySQL
    return getattr(connection, "closed", False) or not is_open  # of psycopg


def is_damage(error: BaseException | None) -> bool:
    """Return whether an error of a driver means that a part of the record cannot be read."""
    if isinstance(error, sqlite3.Error):
        return re.search(_DAMAGED, str(error)) is not None
    codes = {getattr(error, "sqlstate", None), *getattr(error, "args", ())[:1]}
    return bool(codes & _DAMAGES) or "timestamp too" in str(error)


def _is_busy(error: sqlite3.OperationalError) -> bool:
    # The lowest byte of a code is what all its variants have in common.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED


def lost(error: BaseException) -> bool:
    """Return whether an error means that the connection is lost: a later attempt may succeed."""
    if isinstance(error, ConnectionLost):
        return True
    cause = _cause(error)
    return type(cause).__name__ == "OperationalError" and (
        not MYSQL_LOST.isdisjoint(cause.args[:1])
        or re.search(UNREACHABLE, _words(cause)) is not None
    )


@contextmanager
def translate_errors(url: Url) -> Iterator[None]:
    """Translate errors of the database, raised in the block, into a StoreError with one sentence.

    If a part of the record cannot be read, DamagedRecord is raised.

    Drivers may raise errors of other kinds while they handle an error of the database: then the
    latter is described. A KeyboardInterrupt is raised again, even if it caused
    further errors. Other errors are not changed.
    """
    try:
        yield
    except (ApplierError, PlannerError):
        raise
    except Exception as error:
        if interrupt := interrupt_in(error):
            raise interrupt from None
        found = _of_database(error)
        if isinstance(found, Damaged):
            raise DamagedRecord(shown(url), [hinted(_words(found))]) from error
        if found:
            raise StoreError(sentence(found, url)) from error
        raise


def _of_database(error: BaseException | None) -> BaseException | None:
    """Return the first error of the database in an error and its chain of causes, or None."""
    while error is not None and not isinstance(error, Refused | sqlite3.Error):
        error = error.__cause__ or error.__context__
    return error


def sentence(error: BaseException, url: Url) -> str:
    """Describe an error of a database in one sentence, with a hint for the user if there is one."""
    text = _words(error)
    for secret in (url.password, *map(url.options.get, ("password", "passwd"))):
        text = text.replace(secret, "***") if secret else text
    if text == "disk I/O error" and _is_full(url):
        text = "the disk is full"
    helpful = hinted(text)
    if re.search(LOCKED, text) and (holder := lock_holder(url)):
        helpful = f"{text}; {holder}"
    if helpful == text and lost(error):
        helpful += "; is the server running? see [actionplan] connection"
    return f"{shown(url)}: {helpful}"


def _is_full(url: Url) -> bool:
    """Return whether the disk of a SQLite file has less room than a write needs."""
    try:
        disk = os.statvfs(os.path.dirname(os.path.abspath(url.database)))
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _LEAST_ROOM


def hinted(text: str) -> str:
    """Append the hint for an error message, if there is one.

    >>> hinted("cannot create the file: No space left on device")
    'cannot create the file: No space left on device; free some space there'
    """
    hint = next((hint for what, hint in HINTS if re.search(what, text)), None)
    return f"{text}; {hint}" if hint else text


def _words(error: BaseException) -> str:
    """Return the first line of the driver's message, without the SQL statement."""
    cause = _cause(error)
    # MySQL's errors are (number, text).
    lines = str(cause.args[-1] if cause.args else cause).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(cause).__name__


def _cause(error: BaseException) -> BaseException:
    """Return the error of the driver inside a Refused, else the error."""
    return error.__cause__ or error if isinstance(error, Refused) else error


#: The log of waits, which the command line shows even if it shows no other.
LOG = logging.getLogger("applier.storage.database_errors")
#: The seconds of waiting for a lock after which its holder is looked up.
SOON_S = 3.0
#: The byte of the ``-shm`` file that a process locks to write in WAL mode (SQLite's file format).
_WRITER = 120


class Holder(NamedTuple):
    """A process that holds a lock; ``stopped`` means that a signal or a debugger has stopped it."""

    pid: int
    command: str
    stopped: bool

    def __str__(self) -> str:
        who = f"process {self.pid} ({self.command}) holds the lock"
        if self.stopped:
            return f"{who} and is stopped; let it continue (kill -CONT {self.pid}) or end it"
        return who


def tell_wait(text: str, longest_s: float) -> None:
    """Log that a lock is waited for; ``text`` is a sentence about who holds it."""
    LOG.warning("%s; waiting for it, %.0f s at most", text, longest_s)


def lock_holder(url: Url) -> Holder | None:
    """Return the process that keeps all others from writing to a SQLite file, None if unknown."""
    path = url.database
    return _holder(f"{path}-shm", _WRITER) or _holder(path)


def folder_holder(folder: Path) -> Holder | None:
    """Return the process that has locked a folder, None if unknown."""
    return _holder(str(folder))


def _holder(path: str, byte: int = 0) -> Holder | None:
    """Return another process with a write lock on a file whose range includes ``byte``, or None.

    With ``byte`` 0, any write lock on the file counts.
    """
    with suppress(OSError):
        inode = os.stat(path).st_ino
        for pid, start, end in _write_locks(inode):
            if (not byte or start <= byte <= end) and pid not in (0, -1, os.getpid()):
                return Holder(pid, _command(pid), _is_stopped(pid))
    return None


def _write_locks(inode: int) -> Iterator[tuple[int, int, float]]:
    """Yield process, first and last byte of each write lock on an inode."""
    for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
        words = line.split()
        # Lines of processes that wait have an arrow, and so one word more.
        if len(words) == 8 and words[3] == "WRITE" and words[5].rpartition(":")[2] == str(inode):
            yield int(words[4]), int(words[6]), float(words[7].replace("EOF", "inf"))


def _command(pid: int) -> str:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        return shortened(" ".join(shlex.join(words[:-1]).split()))
    return "unknown"


def _is_stopped(pid: int) -> bool:
    with suppress(OSError):
        # The name of the command is in parentheses, and may contain any character.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2][0] in "Tt"
    return False
