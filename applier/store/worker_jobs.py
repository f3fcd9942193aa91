# SPDX-License-Identifier: Apache-2.0
"""Jobs of workers on other machines, and the part of the interface of stores that keeps them.

A job is one attempt of an action that a worker carries out. Its row in the record is the only
truth about it: messages say that there may be something to do, and prove nothing.

Each change is one statement that states what the job must be:

========================  ======================  ================================================
Change                    Who                     Condition
========================  ======================  ================================================
nothing to ``todo``       applier                 its claim on the plan; with the start
``todo`` to ``doing``     worker                  nobody has taken it, or it is ``doing`` with the
                                                  same token, because an answer may be lost
lease renewed             worker                  ``doing`` with its token
``doing`` to ``ended``    worker                  ``doing`` with its token; if repeated as well
``doing`` to ``lost``     applier                 the lease ran out by the clock of the database
``lost`` to ``todo``      applier                 only to be found or verified: nothing runs again
                                                  that way
to be found: verified     applier                 ``todo``: no worker of its machine has taken it
``todo`` to cancelled     applier                 it was told to stop before a worker took it
told to stop              applier                 ``doing`` or ``lost``, and not told before
removed                   applier                 its claim on the plan; with the end
all removed               whoever ends the plan   it SUCCEEDED, FAILED or is CANCELLED
========================  ======================  ================================================
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from applier.contracts import HistoryEntry


class WorkerJobState(StrEnum):
    """The states of a job. A row exists from the start of its attempt on record to its end."""

    #: No worker has taken it.
    TODO = "todo"
    #: A worker has taken it, and holds a lease.
    DOING = "doing"
    #: Its worker has written a result.
    ENDED = "ended"
    #: Its lease ran out. No result is accepted any more.
    LOST = "lost"
    #: It was told to stop before a worker took it, so that it never begins.
    CANCELLED = "cancelled"


#: A job in one of these states has nothing more to tell.
OVER = (WorkerJobState.ENDED, WorkerJobState.LOST, WorkerJobState.CANCELLED)


class JobTask(StrEnum):
    """What a worker is to do about the attempt."""

    #: Run it.
    ACT = "act"
    #: Find out what became of it, because its worker was lost; follow it if it goes on.
    VERIFY = "verify"
    #: The same, by a worker on the machine of the lost one, where its commands may go on.
    FIND = "find"


class StopReason(StrEnum):
    """Why a job is told to stop."""

    #: Its plan was cancelled, or its action aborted.
    ABORT = "abort"
    #: It took too long: its effect is verified when it has stopped.
    TIMEOUT = "timeout"


class AttemptKey(NamedTuple):
    """The key of a job: the uuids of plan and action, and the number of the attempt from 1."""

    plan: str
    action: str
    attempt: int


class WorkerJob(NamedTuple):
    """A job as recorded.

    ``worker`` is the name of the worker that took it. ``age_s`` is how many seconds ago it was
    offered. ``result`` is what its worker has written at its end.
    """

    key: AttemptKey
    queue: str
    action_type: str
    state: WorkerJobState
    task: JobTask
    age_s: float
    worker: str | None = None
    stop: StopReason | None = None
    result: Mapping[str, Any] | None = None


class TakenJob(NamedTuple):
    """A job that a worker has taken: what to do, and with which payload.

    ``lost_worker`` is the name of the first worker that had it, if it is to be found or verified
    by another.
    """

    task: JobTask
    payload: Mapping[str, Any]
    stop: StopReason | None = None
    lost_worker: str | None = None


class HeldJob(NamedTuple):
    """A job that a worker took, as a look into the record shows it.

    ``token`` is None if the worker holds it no more.
    """

    key: AttemptKey
    token: str | None
    stop: StopReason | None = None


#: A worker reports each so many seconds, whatever the lease.
REPORT_S = 5.0
#: One that was not heard of for so many seconds is not counted among those that serve a queue.
SILENT_S = 15.0


class Served(NamedTuple):
    """How many workers serve a queue, and how many jobs they carry out at once.

    A worker of several queues counts for each of them.
    """

    workers: int
    places: int


#: What is said when somebody serves each queue again.
ALL_SERVED = "Each queue has a worker now."


def unserved(queues: Iterable[str]) -> str:
    """Return the sentence about queues that nobody serves; nothing, if there are none.

    >>> unserved({"site-c", "site-b"})
    'No worker serves site-b, site-c.'
    """
    return f"No worker serves {', '.join(names)}." if (names := sorted(queues)) else ""


class Worker(NamedTuple):
    """A worker that is registered in the store; its ``name`` is new at each start.

    ``queues`` are those that it serves, ``types`` its action types, ``places`` how many jobs it
    carries out at once, ``running`` how many it has. ``cloud`` is the name of its cloud.
    ``draining`` means that it takes no more jobs, and ends when it has none. ``started_at`` and
    ``silent_s``, the seconds since it was heard of, are by the clock of the database.
    """

    name: str
    host: str
    pid: int
    user: str
    version: str
    queues: Sequence[str]
    types: Sequence[str]
    places: int
    running: int = 0
    draining: bool = False
    cloud: str | None = None
    started_at: datetime | None = None
    silent_s: float = 0.0


def machine_of(worker: str) -> str:
    """Return the machine of a worker, with which its name begins.

    >>> machine_of("cmp1:4711:a1b2c3")
    'cmp1'
    """
    return worker.rsplit(":", 2)[0]


@runtime_checkable
class WorkerJobStore(Protocol):
    """The part of a store that keeps jobs of workers.

    A job is offered by the report of a start that carries it (:class:`applier.contracts.Report`),
    in the transaction that writes the start. It is removed by the report of an end that carries
    it, and with all others when its plan ends. All times are by the clock of the database.
    """

    def jobs_of(self, plan: str, states: Collection[WorkerJobState] = ()) -> list[WorkerJob]:
        """List the jobs of a plan in some states, or in any."""

    def unsent_jobs(self, plan: str, older_s: float) -> list[WorkerJob]:
        """List the jobs that nobody has taken for ``older_s`` seconds since they were sent last.

        They count as sent now.
        """

    def stop_jobs(self, keys: Collection[AttemptKey], why: StopReason) -> None:
        """Tell jobs to stop; one that nobody has taken becomes CANCELLED. The first reason stays.

        One that is LOST is told as well, for who verifies it. Nothing happens to others that are
        over.
        """

    def fence_jobs(self, plan: str) -> None:
        """Make the jobs of a plan LOST whose leases ran out."""

    def verify_job(self, key: AttemptKey, task: JobTask = JobTask.VERIFY) -> bool:
        """Offer a LOST job again, to be verified or found; return whether that was done.

        One that is to be found, and that nobody has taken, can be offered to be verified.
        """

    def take_job(
        self, key: AttemptKey, *, worker: str, token: str, lease_s: float
    ) -> TakenJob | None:
        """Take a job that nobody has taken, or that was taken with this ``token``; else None."""

    def jobs_to_find(self, worker: str, queues: Collection[str]) -> list[AttemptKey]:
        """List the jobs of some queues that are to be found on the machine of a worker."""

    def renew_jobs(self, held: Iterable[HeldJob], lease_s: float) -> None:
        """Renew the leases of jobs that are still held with their tokens."""

    def held_jobs(self, worker: str) -> list[HeldJob]:
        """List the jobs that a worker took last, also those that were lost."""

    def end_job(self, key: AttemptKey, token: str, result: Mapping[str, Any]) -> bool:
        """Write the result of a job, if it is still held with this token; return whether it was.

        A repeated call returns the same.
        """

    def report_worker(self, worker: Worker) -> bool:
        """Register a worker, or record that it was heard of; return whether it is to drain.

        A worker that says that it drains is recorded so.
        """

    def remove_worker(self, name: str) -> None:
        """Remove a worker that has ended."""

    def drain_worker(self, name: str, *, history: HistoryEntry | None = None) -> bool:
        """Tell a worker to take no more jobs; return whether there is one of this name.

        The entry of the history has the plan :data:`applier.store.retention.NO_PLAN`. A worker that
        was told before is not told again, and nothing is written.
        """

    def workers(self) -> list[Worker]:
        """List the registered workers by name."""

    def served_queues(self) -> Mapping[str, Served]:
        """Return the queues that somebody serves: not counting those who drain or are silent."""
