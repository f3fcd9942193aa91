# SPDX-License-Identifier: Apache-2.0
"""Reports of changes of actions, and the records of who runs and changes plans, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from planner.plan.states import ActionState, Outcome, PlanState, StateReason


class ActionOf(NamedTuple):
    """A reference to an action of another plan: the uuids of plan and action."""

    plan: str
    action: str


class JobOffer(NamedTuple):
    """An attempt that is offered as a job to the workers that serve a queue.

    ``payload`` is the input of the worker, as JSON types, without secrets and configuration.
    """

    attempt: int
    queue: str
    action_type: str
    payload: Mapping[str, Any]


class Report(NamedTuple):
    """A change of the state of one action: its start, its end, or a retry.

    ``old`` is the state that the action must still have in the store. From ONGOING to PENDING means
    that an attempt failed and will be retried. ``given_up`` means that its thread hangs, or that
    a command of it may still run; its tokens stay held. ``left_in`` is the process in which it may
    still be at work then, as ``HOST:PID``; None for the process that runs the plan. ``undoes`` is
    the original action in a rollback, which becomes REVERTED or REVERT_FAILED. ``job`` is the job
    of a worker on another machine: the report of a start offers it, the report of an end removes
    it. ``again`` means that an attempt which FAILED did not do its work because its worker was
    lost: another one follows, whatever the number of retries.
    """

    uuid: str
    old: ActionState
    state: ActionState
    outcome: Outcome | None = None
    state_reason: StateReason | None = None
    message: str | None = None
    output: str | None = None
    given_up: bool = False
    left_in: str | None = None
    undoes: ActionOf | None = None
    job: JobOffer | None = None
    again: bool = False

    @property
    def starts(self) -> bool:
        """Whether an attempt starts."""
        return self.old is ActionState.PENDING and self.state is ActionState.ONGOING


class Listener(Protocol):
    """A receiver of each committed change, in the engine's thread. Its methods must not raise."""

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Handle the committed starts and ends of actions."""

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Handle a committed change of the state of the plan."""


class RunOptions(NamedTuple):
    """The options with which a run began, where each came from, and why it was begun.

    A source is ``default``, ``--set``, a section of the configuration, or ``the plan``.
    """

    max_workers: int
    workers_from: str
    on_failure: str
    failure_from: str
    reason: str | None = None


class Claimant(NamedTuple):
    """The process that runs a plan.

    ``heartbeat_at`` is the time of its last recorded heartbeat, by the clock of its host, and
    ``heartbeat_interval_s`` the seconds between two. ``requests_before`` is the number of the last
    request that was made before it claimed the plan, and ``claimed_at`` is when it did so. ``jobs``
    is the folder in which its commands leave their output and exit codes on its host; None if it is
    not known. ``options`` are those of its run; None if they are not known. The store sets
    ``heartbeat_at``, ``requests_before`` and ``claimed_at``, the claimant the others.
    """

    host: str
    pid: int
    user: str
    heartbeat_at: datetime | None = None
    heartbeat_interval_s: float = 5.0
    requests_before: int = 0
    claimed_at: datetime | None = None
    jobs: str | None = None
    options: RunOptions | None = None


class RequestVerb(StrEnum):
    """The kinds of requests to a running plan."""

    #: Nodes of places that have begun finish, at once or not.
    CANCEL = "cancel"
    CANCEL_NOW = "cancel-now"
    PAUSE = "pause"
    PAUSE_NOW = "pause-now"
    #: Pause the plan, and leave it to another applier. Only the applier that runs it requests this.
    HAND_BACK = "hand_back"
    #: Skip one action.
    SKIP = "skip"
    #: Stop one running action.
    ABORT = "abort"
    #: Change limits of tokens, or the number of workers.
    LIMIT = "limit"


#: The name of the number of workers among the limits of a request.
MAX_WORKERS = "max_workers"
CANCELS = frozenset({RequestVerb.CANCEL, RequestVerb.CANCEL_NOW})
PAUSES = frozenset({RequestVerb.PAUSE, RequestVerb.PAUSE_NOW})


class Request(NamedTuple):
    """A request to a running plan, usually by an operator.

    ``verb`` is a :class:`RequestVerb`; an unknown one, which a newer release may have recorded, is
    ignored. ``action`` is the uuid of the action to skip or to abort. ``limits`` maps tokens to new
    limits, and ``max_workers`` to the number of workers. ``number`` counts the requests of a plan
    from 1.
    """

    verb: str
    who: str
    why: str | None = None
    action: str | None = None
    limits: Mapping[str, int] = {}
    number: int = 0
    created_at: datetime | None = None

    @property
    def cancels(self) -> bool:
        """Whether it asks for a cancel, at once or not."""
        return self.verb in CANCELS

    @property
    def pauses(self) -> bool:
        """Whether it asks for a pause, at once or not."""
        return self.verb in PAUSES

    @property
    def by(self) -> str:
        """Its origin and its reason: ``by ann: enough``."""
        return f"by {self.who}" + (f": {self.why}" if self.why else "")


class Once(NamedTuple):
    """What makes a change happen once: a key, and a digest of all that was asked with it."""

    key: str
    digest: str


class HistoryEntry(NamedTuple):
    """A change of a plan: who made it, when and why.

    ``verb`` names the change or the request. ``project``, ``address`` and ``request_id`` are None
    unless it came over HTTP. ``number`` and ``plan`` are set by the store; the numbers of the
    entries of a plan are in the order of its changes. The store refuses a change whose ``once`` has
    a key of an earlier change, and one to a plan that has a later entry than the number ``after``.
    """

    verb: str
    who: str
    at: datetime
    why: str | None = None
    action: str | None = None
    project: str | None = None
    address: str | None = None
    request_id: str | None = None
    number: int = 0
    plan: str = ""
    once: Once | None = None
    after: int | None = None


class Approval(NamedTuple):
    """The consent of a person to the run of a plan.

    ``content`` is the digest of the approved content, by
    :func:`applier.guarding.approval.approvable`. It is void once the plan has another one.
    """

    who: str
    at: datetime
    content: str
    why: str | None = None
    project: str | None = None
