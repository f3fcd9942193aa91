# SPDX-License-Identifier: Apache-2.0
"""A thread for calls that may hang, so that the caller can wait for a limited time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

LOG = logging.getLogger(__name__)

_Call = Callable[[], None]


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
