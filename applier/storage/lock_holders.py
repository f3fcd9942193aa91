# SPDX-License-Identifier: Apache-2.0
"""Finds the process that has locked a SQLite file or its folder, from the kernel's table of locks.

The table is ``/proc/locks`` of Linux. On other systems, and for processes outside of this
container, no holder is found.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from applier.storage.connection import Url
from planner.errors import shortened

#: The log of waits, which the command line shows even if it shows no other.
LOG = logging.getLogger("applier.storage.lock_holders")
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


def of_record(url: Url) -> Holder | None:
    """Return the process that keeps all others from writing to a SQLite file, None if unknown."""
    path = url.database
    return _holder(f"{path}-shm", _WRITER) or _holder(path)


def of_folder(folder: Path) -> Holder | None:
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
