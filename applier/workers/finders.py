# SPDX-License-Identifier: Apache-2.0
"""Threads that find out what became of jobs whose workers were lost on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable

from applier.store.worker_jobs import AttemptKey


class Finders:
    """One thread for each job, beside the places of the worker: its command has a place already."""

    def __init__(self, perform: Callable[[AttemptKey], None]) -> None:
        self._perform = perform
        self._threads: dict[AttemptKey, threading.Thread] = {}
        self._lock = threading.Lock()
        self._is_over = False

    def find(self, key: AttemptKey) -> None:
        """Find out what became of a job, unless a thread does already or the worker ends."""
        with self._lock:
            self._threads = {k: t for k, t in self._threads.items() if t.is_alive()}
            if self._is_over or key in self._threads:
                return
            name = f"job-finder-{key.action}"
            thread = threading.Thread(target=self._perform, args=(key,), name=name, daemon=True)
            self._threads[key] = thread
            thread.start()

    def end(self) -> None:
        """Begin nothing more, and wait for what was begun."""
        with self._lock:
            self._is_over = True
        for thread in self._threads.values():
            thread.join()
