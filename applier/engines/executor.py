# SPDX-License-Identifier: Apache-2.0
"""The interface of executors, which run attempts in threads of this process or at workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from applier.contracts import JobOffer, Report
from applier.store.worker_jobs import StopReason


class Executor(Protocol):
    """Executes the attempts of one run; only the engine's thread calls its methods.

    A task is a :class:`applier.engines.tasks.ActionTask`. Each submitted or adopted attempt ends
    with exactly one report, also if it fails, unless :meth:`let_go` has returned True for it. The
    report is passed, in any thread, to the function that the executor was made with. Leaving the
    context manager frees its threads and connections.
    """

    #: The number of attempts that may run at once.
    maximum: int
    #: The seconds, added to the grace period, for a stop signal to arrive and a report to return.
    away_s: float

    def offer(self, task: Any) -> JobOffer | None:
        """Prepare an attempt whose start is about to be recorded.

        Return the job to be recorded with the start; None if it runs in a thread of this process.
        """

    def grow(self, number: int, extra: int = 0) -> None:
        """Provide places for ``number`` attempts, but not more than ``maximum`` plus ``extra``.

        ``extra`` of the ``number`` attempts do not count against the maximum.
        """

    def submit(self, task: Any) -> None:
        """Execute an attempt whose start is on record."""

    def adopt(self, task: Any) -> None:
        """Follow to its end an attempt that another applier started and that still runs."""

    def stop(self, task: Any, why: StopReason) -> None:
        """Send an attempt the stop signal, upon which its plugin's abort is called; do not wait."""

    def let_go(self, task: Any) -> bool:
        """Leave an attempt to the next applier, because this one cannot record its end.

        Return True if the attempt goes on without this process; then no report of it follows. If
        False is returned, the caller has to stop it, which leaves its commands running.
        """

    def replace(self) -> None:
        """Allow one place more, because an attempt hangs and its place will not become free."""

    def __enter__(self) -> Executor: ...

    def __exit__(self, *error: object) -> None: ...


#: Makes the executor of a run from the number of attempts at once and the receiver of reports.
MakeExecutor = Callable[[int, Callable[[Report], None]], Executor]
