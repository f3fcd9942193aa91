# SPDX-License-Identifier: Apache-2.0
"""The states of plans and actions, and all allowed transitions between them.

A row of a table is (old state, new state, who may make the change, the reason for it).
:func:`check` refuses a change that is not in the table.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from planner.errors import InvalidTransition


class ActionState(StrEnum):
    """The state of an action."""

    PENDING = "PENDING"
    ONGOING = "ONGOING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    FAILED_DEPENDENCIES = "FAILED_DEPENDENCIES"
    CANCELLED = "CANCELLED"
    REVERTED = "REVERTED"
    REVERT_FAILED = "REVERT_FAILED"
    UNKNOWN = "UNKNOWN"


class PlanState(StrEnum):
    """The state of a plan."""

    RECOMMENDED = "RECOMMENDED"
    PENDING = "PENDING"
    ONGOING = "ONGOING"
    PAUSED = "PAUSED"
    CANCELLING = "CANCELLING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SUPERSEDED = "SUPERSEDED"
    DELETED = "DELETED"


class Outcome(StrEnum):
    """The result of an action that ran. Triggers and blockers refer to it."""

    CHANGED = "changed"
    OK = "ok"
    CREATED = "created"
    FAILED = "failed"
    ERROR = "error"


class StateReason(StrEnum):
    """The reason for the state of an action, where several reasons lead to the same state."""

    NOT_TRIGGERED = "not_triggered"
    OPERATOR = "operator"
    ALREADY_DONE = "already_done"
    ABORTED = "aborted"


class Who(StrEnum):
    """Who makes a change: a person, or the engine that runs the plan."""

    OPERATOR = "OPERATOR"
    ENGINE = "ENGINE"


class Transition(NamedTuple):
    """One allowed change of state."""

    old: StrEnum
    new: StrEnum
    who: Who
    why: str


#: An action in one of these has succeeded: actions that need it may start.
WELL = frozenset({ActionState.SUCCEEDED, ActionState.SKIPPED})
#: An action in one of these has not ended.
OPEN = frozenset({ActionState.PENDING, ActionState.ONGOING})
#: A plan in one of these has ended. Only ``resume``, ``delete`` and ``undelete`` change it.
ENDED_PLAN = frozenset(
    {
        PlanState.SUCCEEDED,
        PlanState.FAILED,
        PlanState.CANCELLED,
        PlanState.SUPERSEDED,
        PlanState.DELETED,
    }
)

_A, _P = ActionState, PlanState
_OPERATOR, _ENGINE = Who.OPERATOR, Who.ENGINE

ACTION_TRANSITIONS = (
    Transition(_A.PENDING, _A.ONGOING, _ENGINE, "all before it ended, the gates let it in"),
    Transition(_A.PENDING, _A.SUCCEEDED, _ENGINE, "a join, and all before it ended"),
    Transition(_A.PENDING, _A.SKIPPED, _OPERATOR, "an operator does not want it"),
    Transition(_A.PENDING, _A.SKIPPED, _ENGINE, "no trigger fired, or a request to skip it"),
    Transition(_A.PENDING, _A.FAILED_DEPENDENCIES, _ENGINE, "what it needs did not end well"),
    Transition(_A.PENDING, _A.CANCELLED, _OPERATOR, "its plan was cancelled before it ran"),
    Transition(_A.PENDING, _A.CANCELLED, _ENGINE, "its plan was cancelled while it ran"),
    Transition(_A.ONGOING, _A.SUCCEEDED, _ENGINE, "its work is done"),
    Transition(_A.ONGOING, _A.FAILED, _ENGINE, "it could not do its work"),
    Transition(_A.ONGOING, _A.SKIPPED, _ENGINE, "its precheck found it done"),
    Transition(_A.ONGOING, _A.CANCELLED, _ENGINE, "it was aborted"),
    Transition(_A.ONGOING, _A.UNKNOWN, _ENGINE, "it is not known whether its work is done"),
    Transition(_A.ONGOING, _A.PENDING, _ENGINE, "it is tried again"),
    Transition(_A.UNKNOWN, _A.SUCCEEDED, _ENGINE, "verified: its work is done"),
    Transition(_A.UNKNOWN, _A.ONGOING, _ENGINE, "its command was found again"),
    Transition(_A.UNKNOWN, _A.PENDING, _ENGINE, "verified: its work is not done"),
    Transition(_A.FAILED, _A.PENDING, _OPERATOR, "its plan is resumed"),
    Transition(_A.FAILED_DEPENDENCIES, _A.PENDING, _OPERATOR, "its plan is resumed"),
    Transition(_A.CANCELLED, _A.PENDING, _OPERATOR, "its plan is resumed"),
    Transition(_A.REVERTED, _A.PENDING, _OPERATOR, "its plan is resumed"),
    Transition(_A.SKIPPED, _A.PENDING, _OPERATOR, "its plan is resumed, nothing had fired it"),
    Transition(_A.ONGOING, _A.UNKNOWN, _OPERATOR, "cancelled after its applier was gone"),
    Transition(_A.UNKNOWN, _A.SUCCEEDED, _OPERATOR, "settled by hand"),
    Transition(_A.UNKNOWN, _A.FAILED, _OPERATOR, "settled by hand"),
    Transition(_A.FAILED, _A.SUCCEEDED, _OPERATOR, "finished by hand"),
    Transition(_A.SUCCEEDED, _A.REVERTED, _ENGINE, "a rollback undid it"),
    Transition(_A.SUCCEEDED, _A.REVERT_FAILED, _ENGINE, "a rollback could not undo it"),
    Transition(_A.REVERT_FAILED, _A.REVERTED, _ENGINE, "a rollback undid it"),
)

PLAN_TRANSITIONS = (
    Transition(_P.RECOMMENDED, _P.PENDING, _OPERATOR, "started"),
    Transition(_P.PENDING, _P.ONGOING, _ENGINE, "claimed by an applier"),
    Transition(_P.ONGOING, _P.SUCCEEDED, _ENGINE, "each action succeeded or was skipped"),
    Transition(_P.ONGOING, _P.FAILED, _ENGINE, "it ended otherwise"),
    Transition(_P.ONGOING, _P.PAUSED, _ENGINE, "a pause was asked for, and what ran has ended"),
    Transition(_P.ONGOING, _P.CANCELLING, _ENGINE, "a cancel was asked for"),
    Transition(_P.CANCELLING, _P.CANCELLED, _ENGINE, "what ran has ended"),
    Transition(_P.ONGOING, _P.PENDING, _ENGINE, "handed back by its applier"),
    Transition(_P.ONGOING, _P.PENDING, _OPERATOR, "resumed, its applier is gone"),
    Transition(_P.CANCELLING, _P.PENDING, _OPERATOR, "resumed, its applier is gone"),
    Transition(_P.ONGOING, _P.PAUSED, _OPERATOR, "its appliers died again and again"),
    Transition(_P.ONGOING, _P.CANCELLED, _OPERATOR, "cancelled, its applier is gone"),
    Transition(_P.CANCELLING, _P.CANCELLED, _OPERATOR, "its applier is gone"),
    Transition(_P.PAUSED, _P.PENDING, _OPERATOR, "resumed"),
    Transition(_P.FAILED, _P.PENDING, _OPERATOR, "resumed"),
    Transition(_P.CANCELLED, _P.PENDING, _OPERATOR, "resumed"),
    Transition(_P.SUCCEEDED, _P.PENDING, _OPERATOR, "resumed, a rollback had undone some of it"),
    Transition(_P.RECOMMENDED, _P.CANCELLED, _OPERATOR, "cancelled before it started"),
    Transition(_P.PENDING, _P.CANCELLED, _OPERATOR, "cancelled before an applier claimed it"),
    Transition(_P.PAUSED, _P.CANCELLED, _OPERATOR, "cancelled while it was paused"),
    Transition(_P.RECOMMENDED, _P.DELETED, _OPERATOR, "removed"),
    Transition(_P.SUCCEEDED, _P.DELETED, _OPERATOR, "removed"),
    Transition(_P.FAILED, _P.DELETED, _OPERATOR, "removed"),
    Transition(_P.CANCELLED, _P.DELETED, _OPERATOR, "removed"),
    Transition(_P.SUPERSEDED, _P.DELETED, _OPERATOR, "removed"),
    Transition(_P.DELETED, _P.RECOMMENDED, _OPERATOR, "brought back, it was not started"),
    Transition(_P.DELETED, _P.SUCCEEDED, _OPERATOR, "brought back, it had succeeded"),
    Transition(_P.DELETED, _P.FAILED, _OPERATOR, "brought back, it had failed"),
    Transition(_P.DELETED, _P.CANCELLED, _OPERATOR, "brought back, it was cancelled"),
    Transition(_P.DELETED, _P.SUPERSEDED, _OPERATOR, "brought back, another had replaced it"),
)

# The types are part of the keys, because PENDING of a plan and PENDING of an action are equal as
# texts.
_ALLOWED = {
    (type(t.old), t.old, type(t.new), t.new, t.who) for t in ACTION_TRANSITIONS + PLAN_TRANSITIONS
}


def sources(new: StrEnum, who: Who) -> tuple[StrEnum, ...]:
    """List the states that ``who`` may change to ``new``, in the order of the table.

    >>> [str(s) for s in sources(PlanState.CANCELLED, Who.OPERATOR)]
    ['ONGOING', 'CANCELLING', 'RECOMMENDED', 'PENDING', 'PAUSED', 'DELETED']
    """
    table = ACTION_TRANSITIONS if isinstance(new, ActionState) else PLAN_TRANSITIONS
    return tuple(t.old for t in table if t.new is new and t.who is who)


def check(what: str, uuid: str, old: StrEnum, new: StrEnum, who: Who) -> None:
    """Raise :class:`InvalidTransition` unless the change is a row of the table.

    >>> check("action", "a1", ActionState.PENDING, ActionState.ONGOING, Who.ENGINE)
    >>> check("action", "a1", ActionState.SUCCEEDED, ActionState.FAILED, Who.ENGINE)
    Traceback (most recent call last):
    planner.errors.InvalidTransition: action a1 is SUCCEEDED: only ONGOING can become FAILED
    """
    if (type(old), old, type(new), new, who) not in _ALLOWED:
        raise InvalidTransition(what, uuid, str(old), str(new), sources(new, who), who)
