# SPDX-License-Identifier: Apache-2.0
"""Computes the state of each node of a deployment from the states of its actions. Pure.

Source of the terms: Fuel's specification of task based deployment. It calls a node ``ready`` if all
its tasks have succeeded, and ``error`` otherwise. Here a node without failures is ``stopped`` if
some of its tasks were never started.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from applier.wording import natural
from planner.plan.model import ANCHOR, JOIN, Action, ActionPlan
from planner.plan.states import OPEN, WELL, ActionState, PlanState

#: The name of the planner whose plans are deployments.
PLANNER = "deployment"
#: The prefix in the names of tasks that belong to no node: ``sync/TASK``.
_SYNC = "sync"


class Word(StrEnum):
    """The state of a task in the terms of deployments, in the order of reports."""

    SUCCESS = "Success"
    SKIPPED = "Skipped"
    IN_PROGRESS = "In Progress"
    PENDING = "Pending"
    WAITING = "Waiting"
    ERROR = "Error"
    FAILED_DEPENDENCIES = "Failed Dependencies"
    CANCELLED = "Cancelled"
    REVERTED = "Reverted"


class Status(StrEnum):
    """The state of a node or of a deployment, the most urgent first."""

    ERROR = "error"
    STOPPED = "stopped"
    IN_PROGRESS = "in progress"
    WAITING = "waiting"
    READY = "ready"


_WORDS = {
    ActionState.SUCCEEDED: Word.SUCCESS,
    ActionState.SKIPPED: Word.SKIPPED,
    ActionState.ONGOING: Word.IN_PROGRESS,
    ActionState.FAILED: Word.ERROR,
    ActionState.UNKNOWN: Word.ERROR,
    ActionState.REVERT_FAILED: Word.ERROR,
    ActionState.FAILED_DEPENDENCIES: Word.FAILED_DEPENDENCIES,
    ActionState.CANCELLED: Word.CANCELLED,
    ActionState.REVERTED: Word.REVERTED,
}
#: A plan in one of these states runs, or will run without further commands.
_GOES_ON = frozenset({PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING})


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeResult:
    """The state of one node, and the number of its tasks in each state."""

    uid: str
    status: Status
    counts: Mapping[Word, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeploymentReport:
    """The state of a deployment; ``nodes`` are ordered by uid, with numbers in numerical order."""

    status: Status
    nodes: tuple[NodeResult, ...]


def report(plan: ActionPlan) -> DeploymentReport:
    """Return the state of a deployment and of each of its nodes.

    Joins and anchors belong to no node. The time is linear in actions and links.
    """
    states = {action.uuid: action.state for action in plan.actions}
    goes_on = plan.state in _GOES_ON
    tasks: dict[str, Counter[Word]] = {}
    for action in plan.actions:
        uid = node_of(action)
        if uid is not None:
            tasks.setdefault(uid, Counter())[word(action, states)] += 1
    nodes = tuple(
        NodeResult(uid=uid, status=_status(tasks[uid], goes_on), counts=tasks[uid])
        for uid in sorted(tasks, key=natural)
    )
    return DeploymentReport(status=_whole(plan, nodes, goes_on), nodes=nodes)


def has_begun(plan: ActionPlan) -> bool:
    """Return whether any action of a plan has started or ended."""
    return any(action.state is not ActionState.PENDING for action in plan.actions)


def node_of(action: Action) -> str | None:
    """Return the node of a task: by its token, else by its name, ``UID/TASK``; None if it has none.

    >>> node_of(Action(uuid="a", action_type="shell", name="x", tokens=("node:3",)))
    '3'
    >>> node_of(Action(uuid="a", action_type="skipped", name="3/ntp"))
    '3'
    """
    if action.action_type in (JOIN, ANCHOR):
        return None
    for token in action.tokens:
        kind, _, uid = token.partition(":")
        if kind == "node":
            return uid
    uid, slash, _ = (action.name or "").partition("/")
    return uid if slash and uid != _SYNC else None


def word(action: Action, states: Mapping[str, ActionState]) -> Word:
    """Return the state of a task in the terms of deployments; ``states`` are by uuid.

    A task that has not started is Waiting while a predecessor has not ended, and Pending if it
    waits only for a token or a worker.
    """
    if action.state is not ActionState.PENDING:
        return _WORDS[action.state]
    if any(states[uuid] in OPEN for uuid in action.before()):
        return Word.WAITING
    groups = ([states[uuid] for uuid in group] for group in action.needs_any)
    return Word.WAITING if any(map(_is_open, groups)) else Word.PENDING


def _is_open(group: Iterable[ActionState]) -> bool:
    """Return whether no action of a group has succeeded, and one still may."""
    known = set(group)
    return not known & WELL and bool(known & OPEN)


def _status(counts: Counter[Word], goes_on: bool) -> Status:
    not_started = counts[Word.WAITING] + counts[Word.PENDING]
    if goes_on and (not_started or counts[Word.IN_PROGRESS]):
        return Status.WAITING if not_started == counts.total() else Status.IN_PROGRESS
    if counts[Word.ERROR] or counts[Word.FAILED_DEPENDENCIES]:
        return Status.ERROR
    if counts[Word.SUCCESS] + counts[Word.SKIPPED] == counts.total():
        return Status.READY
    return Status.STOPPED


def _whole(plan: ActionPlan, nodes: Iterable[NodeResult], goes_on: bool) -> Status:
    """Return the state of a deployment: STOPPED if it has ended and a task was never started."""
    states = {action.state for action in plan.actions}
    if goes_on:
        return Status.IN_PROGRESS
    never = OPEN | {ActionState.CANCELLED, ActionState.REVERTED}
    if states & never or plan.state in (PlanState.PAUSED, PlanState.CANCELLED):
        return Status.STOPPED
    well = plan.state is PlanState.SUCCEEDED and states <= WELL
    return Status.READY if well and all(n.status is Status.READY for n in nodes) else Status.ERROR
