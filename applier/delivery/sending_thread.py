# SPDX-License-Identifier: Apache-2.0
"""A thread that makes calls which may hang, so that whoever waits for them need not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

LOG = logging.getLogger(__name__)

_Call = Callable[[], None]


class SendingThread(threading.Thread):
    """Makes calls one after the other, and ``close`` as the last.

    A process can end while it hangs.
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
            except Exception as reason:
                done.set_exception(reason)
            else:
                done.set_result(None)
        try:
            self._close()
        except Exception as reason:
            LOG.debug("A connection was not closed: %s", reason)

    def call(self, call: _Call, patience_s: float) -> None:
        """Make a call, and return when it has; raises its error, or TimeoutError."""
        done: Future[None] = Future()
        self._calls.put((call, done))
        try:
            done.result(patience_s)
        except TimeoutError:
            self._hangs = not done.done()
            raise

    def end(self, patience_s: float) -> None:
        """Let the thread end; return when it has, or when that takes too long."""
        self._calls.put(None)
        if not self._hangs:
            self.join(patience_s)
