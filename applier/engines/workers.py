"""Threads that do the work of actions."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any


class Workers:
    """Up to ``maximum`` threads, started as they are needed by their one owner.

    They are daemons: a plugin that hangs must not keep the process alive, as the threads of
    ``concurrent.futures`` do. ``done`` is called in the worker with what the work returned; the
    work itself must not raise.
    """

    def __init__(self, maximum: int, done: Callable[[Any], None]) -> None:
        #: How many may work at once; when it is lowered, no thread ends by that.
        self.maximum = maximum
        self._done = done
        self._work: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._given_up = 0

    def grow(self, number: int, extra: int = 0) -> None:
        """Have so many threads, or as many as may be; raises RuntimeError if one cannot start.

        ``extra`` of them do what takes no place, and are there beside the maximum.
        """
        while len(self._threads) < min(number - extra, self.maximum) + extra + self._given_up:
            name = f"action-worker-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._loop, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def replace(self) -> None:
        """Count one thread as given up: there may be another in its place."""
        self._given_up += 1

    def submit(self, work: Callable[[], Any]) -> None:
        """Have work done by the next thread that is free."""
        self._work.put(work)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        """Let the threads end once they have nothing to do; does not wait for those that hang."""
        for _ in self._threads:
            self._work.put(None)

    def _loop(self) -> None:
        while (work := self._work.get()) is not None:
            self._done(work())
