# SPDX-License-Identifier: Apache-2.0
"""Writes the whole content of a file at once: readers see the old content or the new one."""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

#: The path of an open descriptor. What it is open on may be a regular file.
_DESCRIPTOR = re.compile("/(?:dev|proc/self|proc/thread-self)/fd/([0-9]{1,9})")


def write(path: str | os.PathLike[str], data: bytes, mode: int | None = None) -> None:
    """Replace the content of a file; raises OSError, and then leaves the file as it was.

    A link is followed. What is not a regular file, such as a device or a pipe, is written to and
    never replaced; so are ``/dev/fd/N`` and the file that is open as standard output or standard
    error. A file with several names (hard links) is written in place, so that it keeps them: if
    that fails, its old content is lost. ``mode`` are the permissions. Without it, an existing file
    keeps its own, and a new one follows the umask. If the process is killed, a file whose name
    begins with ``.new-`` may be left beside it.
    """
    number = _DESCRIPTOR.fullmatch(os.path.normpath(path))
    if number is not None:
        _append(path, int(number[1]), data)
        return
    try:
        found = os.stat(path)
    except FileNotFoundError:
        _replace(Path(os.path.realpath(path)), data, mode, None)
        return
    stream = _standard_stream(found)
    if stream is not None or not stat.S_ISREG(found.st_mode):
        _append(path, stream, data)
    elif found.st_nlink > 1:
        _overwrite(path, data, mode)
    else:
        _replace(Path(os.path.realpath(path)), data, mode, found)


def _standard_stream(found: os.stat_result) -> int | None:
    """Return 1 or 2 if standard output or standard error is open on this file, else None."""
    for number in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), found):
                return number
    return None


def _append(path: str | os.PathLike[str], stream: int | None, data: bytes) -> None:
    """Write to the descriptor ``stream`` or, if that is None, to the device or pipe at ``path``."""
    if stream is None:
        handle = os.open(path, os.O_WRONLY | os.O_NOCTTY)
    else:
        for buffered in (sys.stdout, sys.stderr):
            buffered.flush()
        handle = os.dup(stream)
    with open(handle, "wb", buffering=0) as file:
        left = memoryview(data)
        while left:
            left = left[file.write(left) :]


def _overwrite(path: str | os.PathLike[str], data: bytes, mode: int | None) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, data: bytes, mode: int | None, old: os.stat_result | None) -> None:
    """Write a new file beside ``path`` and rename it; ``old`` describes the file that is there."""
    fresh = path.with_name(f".new-{uuid4().hex}")
    wanted = stat.S_IMODE(old.st_mode) if mode is None and old is not None else mode
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    handle = os.open(fresh, flags, 0o666 if wanted is None else 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            if old is not None:
                with suppress(PermissionError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
            if wanted is not None:
                os.fchmod(file.fileno(), wanted)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Write the names in a folder to the disk.

    Without the right to read the folder, or if its file system cannot do that, nothing is done.
    """
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
