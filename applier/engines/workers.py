# SPDX-License-Identifier: Apache-2.0
"""Threads that execute actions."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any


class Workers:
    """Up to ``maximum`` threads, started when needed. Only one thread may call its methods.

    The threads are daemons, unlike those of ``concurrent.futures``, because a plugin that hangs
    must not keep the process alive. ``done`` is called in the worker with the result of the work,
    which must not raise.
    """

    def __init__(self, maximum: int, done: Callable[[Any], None]) -> None:
        #: The number of threads that may run at once. Lowering it does not end threads.
        self.maximum = maximum
        self._done = done
        self._work: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._given_up = 0

    def grow(self, number: int, extra: int = 0) -> None:
        """Start threads until there are ``number``, but at most ``maximum`` plus ``extra``.

        Of the ``number``, ``extra`` threads do not count against the maximum. Raises RuntimeError
        if a thread cannot start.
        """
        while len(self._threads) < min(number - extra, self.maximum) + extra + self._given_up:
            name = f"action-worker-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._loop, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def replace(self) -> None:
        """Count one thread less, because it hangs, so that another one may be started."""
        self._given_up += 1

    def submit(self, work: Callable[[], Any]) -> None:
        """Queue work for the next free thread."""
        self._work.put(work)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        """Tell the threads to end once the queue is empty; do not wait for them."""
        for _ in self._threads:
            self._work.put(None)

    def _loop(self) -> None:
        while (work := self._work.get()) is not None:
            self._done(work())
