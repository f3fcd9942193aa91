# SPDX-License-Identifier: Apache-2.0
"""Executes attempts in threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

from applier.contracts import Report
from applier.engines.workers import Workers
from applier.store.worker_jobs import StopReason


class Threads:
    """See :class:`applier.engines.executor.Executor`; each attempt occupies one thread."""

    away_s = 0.0

    def __init__(self, maximum: int, done: Callable[[Report], None]) -> None:
        self._workers = Workers(maximum, done)

    @property
    def maximum(self) -> int:
        """The number of threads that may run at once."""
        return self._workers.maximum

    @maximum.setter
    def maximum(self, number: int) -> None:
        """Change it; threads that run are not ended."""
        self._workers.maximum = number

    def offer(self, task: Any) -> None:
        """Let the attempt begin; see :meth:`applier.engines.tasks.ActionTask.permit`."""
        task.permit()

    def grow(self, number: int, extra: int = 0) -> None:
        """See :meth:`applier.engines.workers.Workers.grow`."""
        self._workers.grow(number, extra)

    def replace(self) -> None:
        """See :meth:`applier.engines.workers.Workers.replace`."""
        self._workers.replace()

    def submit(self, task: Any) -> None:
        """Queue an attempt for the next free thread."""
        self._workers.submit(task.execute)

    def adopt(self, task: Any) -> None:
        """Queue an attempt that goes on: a thread follows its commands."""
        self._workers.submit(task.execute)

    def stop(self, task: Any, why: StopReason) -> None:
        """Set the stop signal of an attempt, and call its plugin's abort.

        In a new thread, because abort may hang as well.
        """
        if why is StopReason.TIMEOUT:
            task.time_out()
        else:
            task.stop.set()
        name = f"action-abort-{task.action.uuid}"
        # The thread logs for the same plan as this one.
        told = partial(copy_context().run, task.abort)
        threading.Thread(target=told, name=name, daemon=True).start()

    def let_go(self, task: Any) -> bool:
        """Leave the commands of an attempt running when it is told to stop."""
        task.let_go()
        return False

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.__exit__(*error)
