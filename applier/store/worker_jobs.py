# SPDX-License-Identifier: Apache-2.0
"""Jobs of workers on other machines, as the record keeps them.

A job is one attempt of an action that a worker carries out. Its state is its row in the record. A
message to a worker only announces that there may be a job; the worker then reads the row.

Each change is one statement, whose WHERE clause is the condition:

==========================  ====================  ================================================
Change                      Who                   Condition
==========================  ====================  ================================================
inserted as ``todo``        applier               its claim on the plan; with the start
``todo`` to ``doing``       worker                nobody has taken it, or it is ``doing`` with the
                                                  same token, because an answer may be lost
lease renewed               worker                ``doing`` with its token
``doing`` to ``ended``      worker                ``doing`` with its token; if repeated as well
``doing`` to ``lost``       applier               the lease ran out by the clock of the database
``lost`` to ``todo``        applier               only to be found or verified: the action is not
                                                  run again that way
task FIND to VERIFY         applier               ``todo``: no worker of its machine has taken it
``todo`` to ``cancelled``   applier               a stop is requested
stop reason recorded        applier               ``doing`` or ``lost``, and without a reason
removed                     applier               its claim on the plan; with the end
all removed                 who ends the plan     it SUCCEEDED, FAILED or is CANCELLED
==========================  ====================  ================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple


class WorkerJobState(StrEnum):
    """The states of a job, whose row exists from the recorded start of its attempt to the end."""

    #: No worker has taken it.
    TODO = "todo"
    #: A worker has taken it, and holds a lease.
    DOING = "doing"
    #: Its worker has written a result.
    ENDED = "ended"
    #: Its lease ran out. No result is accepted any more.
    LOST = "lost"
    #: A stop was requested before a worker took it, so that it never begins.
    CANCELLED = "cancelled"


#: The states of jobs that no worker carries out or may take. Only a LOST one can be offered again.
OVER = (WorkerJobState.ENDED, WorkerJobState.LOST, WorkerJobState.CANCELLED)


class JobTask(StrEnum):
    """The task of the worker that takes a job."""

    #: Run the attempt.
    ACT = "act"
    #: Verify the attempt, because its worker was lost. If its command still runs, follow it.
    VERIFY = "verify"
    #: The same, by a worker on the machine of the lost one, where its command may still run.
    FIND = "find"


class StopReason(StrEnum):
    """The reason for which a job has to stop."""

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

    ``worker`` is the name of the worker that took it last. ``age_s`` is how many seconds ago it was
    offered first. ``stop`` is None unless it has to stop. ``result`` is what its worker wrote when
    it ended, as JSON types.
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
    """A job that a worker has taken, with the data that the worker needs.

    ``stop`` is None unless it has to stop. ``lost_worker`` is the name of the first worker that
    took it, if another has to find or verify it; else None.
    """

    task: JobTask
    payload: Mapping[str, Any]
    stop: StopReason | None = None
    lost_worker: str | None = None


class HeldJob(NamedTuple):
    """A job that a worker took, as read from the record.

    ``token`` is that with which it was taken last, or None if it was lost since.
    """

    key: AttemptKey
    token: str | None
    stop: StopReason | None = None


#: The seconds between two reports of a worker, whatever the lease.
REPORT_S = 5.0
#: The seconds without a report after which a worker does not count as serving its queues.
SILENT_S = 15.0


class Served(NamedTuple):
    """How many workers serve a queue, and how many jobs they carry out at once.

    A worker of several queues counts for each of them.
    """

    workers: int
    places: int


#: The message when each queue has a worker again.
ALL_SERVED = "Each queue has a worker now."


def unserved(queues: Iterable[str]) -> str:
    """Return the message about queues that no worker serves; an empty text if there are none.

    >>> unserved({"site-c", "site-b"})
    'No worker serves site-b, site-c.'
    """
    return f"No worker serves {', '.join(names)}." if (names := sorted(queues)) else ""


class Worker(NamedTuple):
    """A worker that is registered in the store; its ``name`` is new at each start.

    ``queues`` are those that it serves, ``types`` its action types, ``places`` how many jobs it
    carries out at once, ``running`` how many it has. ``cloud`` is the name of its cloud.
    ``draining`` means that it takes no more jobs, and ends when it has none. ``started_at`` and
    ``silent_s``, the seconds since its last report, are by the clock of the database; only reading
    from the store sets them.
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
