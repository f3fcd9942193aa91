# SPDX-License-Identifier: Apache-2.0
"""Reports of state changes of actions, and the interface of listeners to committed reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
