# SPDX-License-Identifier: Apache-2.0
"""The interface of what executes attempts: threads of this process, or workers elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from applier.contracts import JobOffer, Report
from applier.store.worker_jobs import StopReason


class Executor(Protocol):
    """Executes the attempts of one run; only the engine's thread calls its methods.

    A task is a :class:`applier.engines.tasks.ActionTask`. The report of each attempt that was
    submitted or adopted is passed to the function that the executor was made with, in any thread,
    once and without an error. As a context manager, it frees what it uses at the end of the run.
    """

    #: The number of attempts that may run at once.
    maximum: int
    #: How many seconds a stop may take to arrive at an attempt, and the news of its end to return.
    away_s: float

    def offer(self, task: Any) -> JobOffer | None:
        """Prepare an attempt whose start is about to be recorded.

        Return the job to be recorded with the start, if it runs at a worker elsewhere.
        """

    def grow(self, number: int, extra: int = 0) -> None:
        """Make places for attempts until there are ``number``, at most ``maximum`` and ``extra``.

        Of the ``number``, ``extra`` do not count against the maximum.
        """

    def submit(self, task: Any) -> None:
        """Execute an attempt whose start is on record."""

    def adopt(self, task: Any) -> None:
        """Follow an attempt to its end that was started by another applier, and goes on."""

    def stop(self, task: Any, why: StopReason) -> None:
        """Tell an attempt to stop, and have its plugin abort it; return at once."""

    def let_go(self, task: Any) -> bool:
        """Leave an attempt to the next applier, because nobody here could record its end.

        Return whether it goes on without this process; its report will not come then. Otherwise it
        has to be stopped, but not the commands that it runs.
        """

    def replace(self) -> None:
        """Count one place more, because an attempt hangs in one."""

    def __enter__(self) -> Executor: ...

    def __exit__(self, *error: object) -> None: ...


#: Makes the executor of a run: how many attempts may run at once, and what takes the reports.
MakeExecutor = Callable[[int, Callable[[Report], None]], Executor]
