# SPDX-License-Identifier: Apache-2.0
"""The interface of receivers of events, how a delivery fails, and the simplest of them, a file.

Receivers that may hang make their calls in a SendingThread.
"""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO, Protocol

from applier.notifications.schema import Event, line

LOG = logging.getLogger(__name__)

#: How many bytes are read at once while the last whole line is searched.
_PIECE = 64 * 1024
#: Delivers one event, or raises an error.
Deliver = Callable[[Event], None]
_Call = Callable[[], None]


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


class EventFile(Receiver):
    """A file to which the services of one host append; a log rotation may move it away.

    The lines of a block of :meth:`opened` are on the disk when it ends. After a crash in a block,
    its lines may be in the file twice; a line that was written in part is removed.
    """

    def __init__(self, path: str, host: str) -> None:
        self.name = f"file {path} on {host}"
        self._path = Path(path)

    @contextmanager
    def opened(self) -> Iterator[Deliver]:
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


class SendingThread(threading.Thread):
    """Makes calls one after the other; the last one is ``close``.

    It is a daemon thread: the process can end while a call hangs.
    """

    def __init__(self, close: _Call) -> None:
        super().__init__(name="sending", daemon=True)
        self._close = close
        self._calls: SimpleQueue[tuple[_Call, Future[None]] | None] = SimpleQueue()
        self._hangs = False
        self.start()

    def run(self) -> None:
        """Make the calls until :meth:`end`."""
        while (asked := self._calls.get()) is not None:
            call, done = asked
            try:
                call()
            except Exception as reason:  # noqa: BLE001 -- raised where somebody waits for the call
                done.set_exception(reason)
            else:
                done.set_result(None)
        try:
            self._close()
        except Exception as reason:  # noqa: BLE001 -- libraries raise anything, and nobody waits any more
            LOG.debug("A connection was not closed: %s", reason)

    def call(self, call: _Call, patience_s: float) -> None:
        """Have a call made, and wait for its end; raise its error.

        Raises TimeoutError after ``patience_s`` seconds; the call may go on.
        """
        done: Future[None] = Future()
        self._calls.put((call, done))
        try:
            done.result(patience_s)
        except TimeoutError:
            self._hangs = not done.done()
            raise

    def end(self, patience_s: float) -> None:
        """Have the thread end after its calls, and wait for that up to ``patience_s`` seconds.

        After a call that has timed out, it does not wait.
        """
        self._calls.put(None)
        if not self._hangs:
            self.join(patience_s)
