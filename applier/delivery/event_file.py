# SPDX-License-Identifier: Apache-2.0
"""Appends events to a file, as JSON Lines."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from applier.delivery.receivers import Away, Deliver
from applier.notifications.lines import line
from applier.notifications.schema import Event

#: How many bytes are read at once while the last whole line is searched.
_PIECE = 64 * 1024


class EventFile:
    """A file to which the services of one host append; a log rotation may move it away.

    The lines of a block of :meth:`opened` are on the disk when it ends. After a crash in a block,
    its lines may be in the file twice; a line that was written in part is removed.
    """

    def __init__(self, path: str, host: str) -> None:
        self.name = f"file {path} on {host}"
        self._path = Path(path)

    @contextmanager
    def opened(self) -> Iterator[Deliver]:
        """See :meth:`applier.delivery.receivers.Receiver.opened`."""
        try:
            with self._path.open("ab+") as file:
                kind = os.fstat(file.fileno()).st_mode
                if stat.S_ISREG(kind):
                    remove_part_of_line(file)

                def append(event: Event) -> None:
                    file.write(f"{line(event)}\n".encode("ascii"))

                yield append
                file.flush()
                if stat.S_ISREG(kind):
                    os.fsync(file.fileno())
        except OSError as reason:
            raise Away(f"{self._path}: {reason.strerror or reason}") from reason


def remove_part_of_line(file: BinaryIO) -> None:
    """Remove an incomplete last line, which a writer leaves if it is killed while it writes."""
    end = file.seek(0, os.SEEK_END)
    place = end
    while place > 0:
        begin = max(0, place - _PIECE)
        file.seek(begin)
        found = file.read(place - begin).rfind(b"\n")
        if found >= 0:
            place = begin + found + 1
            break
        place = begin
    if place < end:
        file.truncate(place)
