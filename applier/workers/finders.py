# SPDX-License-Identifier: Apache-2.0
"""Threads that follow or verify the jobs whose workers were lost on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable

from applier.store.worker_jobs import AttemptKey


class LostJobThreads:
    """Carries out lost jobs, each in a thread that does not count against the worker's places.

    The command of a lost job may still run on this machine, where it takes up a place already.
    """

    def __init__(self, perform: Callable[[AttemptKey], None]) -> None:
        self._perform = perform
        self._threads: dict[AttemptKey, threading.Thread] = {}
        self._lock = threading.Lock()
        self._is_over = False

    def find(self, key: AttemptKey) -> None:
        """Start a thread that performs a job, unless one for it runs or :meth:`end` was called."""
        with self._lock:
            self._threads = {k: t for k, t in self._threads.items() if t.is_alive()}
            if self._is_over or key in self._threads:
                return
            name = f"job-finder-{key.action}"
            thread = threading.Thread(target=self._perform, args=(key,), name=name, daemon=True)
            self._threads[key] = thread
            thread.start()

    def end(self) -> None:
        """Start no more threads, and wait without a time limit until those that run have ended."""
        with self._lock:
            self._is_over = True
        for thread in self._threads.values():
            thread.join()
