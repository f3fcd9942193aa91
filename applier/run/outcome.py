"""Folds the states of a plan's actions into the plan's own. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from applier.scheduling.turn import Halt, Stopped
from planner.states import OPEN, WELL, ActionState, PlanState

#: How many actions in a state are told, in this order.
_WORDS = {
    ActionState.SUCCEEDED: "succeeded",
    ActionState.SKIPPED: "skipped",
    ActionState.FAILED: "failed",
    ActionState.FAILED_DEPENDENCIES: "not run because of it",
    ActionState.CANCELLED: "cancelled",
    ActionState.UNKNOWN: "in doubt",
    ActionState.REVERTED: "reverted",
    ActionState.REVERT_FAILED: "not reverted",
    ActionState.ONGOING: "running",
    ActionState.PENDING: "left to do",
}

#: States of a plan that something else than its actions brought about.
_BY_HALT = frozenset({PlanState.PAUSED, PlanState.CANCELLED})


def fold(
    states: Iterable[ActionState],
    stopped: Stopped | Halt | None = None,
    *,
    joins: Iterable[ActionState] = (),
) -> tuple[PlanState, str]:
    """Give the state that a plan ends in, and a message that says how many ended how.

    ``joins`` are the states of joins, which do nothing, so that the message does not count them.
    ``stopped`` is why nothing new started, if something kept it; of a Halt the message says by
    what. A pause that came when nothing was left to do is none.

    >>> S = ActionState
    >>> fold([S.SUCCEEDED] * 12 + [S.FAILED] + [S.FAILED_DEPENDENCIES] * 2)[1]
    '12 succeeded, 1 failed, 2 not run because of it'
    >>> str(fold([S.SUCCEEDED, S.PENDING], Stopped.PAUSED)[0])
    'PAUSED'
    """
    counts = Counter(states)
    halt = stopped if isinstance(stopped, Halt) else None
    state = _state(counts + Counter(joins), halt.stopped if halt else stopped)
    told = summary(counts)
    if halt and (state in _BY_HALT or halt.stopped is Stopped.EXCEEDED):
        told = f"{halt.why}; {told}"
    return state, told


def summary(counts: Counter[ActionState]) -> str:
    """Say how many actions are in which state."""
    told = [f"{counts[state]} {word}" for state, word in _WORDS.items() if counts[state]]
    return ", ".join(told) or "nothing to do"


def _state(counts: Counter[ActionState], stopped: Stopped | Halt | None) -> PlanState:
    if stopped is Stopped.CANCELLED:
        return PlanState.CANCELLED
    if stopped is Stopped.PAUSED and any(counts[state] for state in OPEN):
        return PlanState.PAUSED
    well = all(state in WELL for state in counts if counts[state])
    return PlanState.SUCCEEDED if well else PlanState.FAILED
