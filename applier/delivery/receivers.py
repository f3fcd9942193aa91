# SPDX-License-Identifier: Apache-2.0
"""The interface of receivers of events, how a delivery fails, and the simplest of them, a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from applier.notifications.schema import Event, line

#: How many bytes are read at once while the last whole line is searched.
_PIECE = 64 * 1024
#: Delivers one event, or raises an error.
Deliver = Callable[[Event], None]


class EventRefused(Exception):
    """The receiver has refused this event; it may accept others. The message is its answer."""


class Away(Exception):
    """The receiver cannot be reached at present, or does not answer; the message says why."""


class Receiver(Protocol):
    """A destination of events, such as a webhook, a file or a message bus.

    ``name`` is that of its subscription. It must not change: with another name, it is another
    receiver.
    """

    name: str

    def opened(self) -> AbstractContextManager[Deliver]:
        """Return a context manager of the function that delivers one event.

        The function is called inside of the block, with the events in their order. It raises Away
        or EventRefused; the caller handles EventRefused inside of the block. An event is delivered
        only once the block has ended without Away.
        """


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
