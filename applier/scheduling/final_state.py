# SPDX-License-Identifier: Apache-2.0
"""The final state of a plan by those of its actions, and the sentence that counts them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from applier.contracts import HistoryEntry, Report
from applier.scheduling.decisions import Halt, HaltReason
from planner.plan.states import OPEN, WELL, ActionState, PlanState

#: The words of the summary for each state, in the order of the summary.
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


#: Final states that are caused by a halt, not by the states of the actions.
_BY_HALT = frozenset({PlanState.PENDING, PlanState.PAUSED, PlanState.CANCELLED})


#: The state of a plan with open actions, by the reason why no more were started.
_UNFINISHED = {HaltReason.PAUSED: PlanState.PAUSED, HaltReason.HANDED_BACK: PlanState.PENDING}


def fold(
    states: Iterable[ActionState],
    stopped: HaltReason | Halt | None = None,
    *,
    joins: Iterable[ActionState] = (),
) -> tuple[PlanState, str]:
    """Return the final state of a plan, and a message that counts its actions by state.

    ``joins`` are the states of joins, which the message does not count. ``stopped`` is the reason
    why no more actions were started, if any; the sentence of a Halt becomes a part of the message.
    A pause is ignored if no action is left.

    >>> S = ActionState
    >>> fold([S.SUCCEEDED] * 12 + [S.FAILED] + [S.FAILED_DEPENDENCIES] * 2)[1]
    '12 succeeded, 1 failed, 2 not run because of it'
    >>> str(fold([S.SUCCEEDED, S.PENDING], HaltReason.PAUSED)[0])
    'PAUSED'
    """
    counts = Counter(states)
    halt = stopped if isinstance(stopped, Halt) else None
    kind = stopped.stopped if isinstance(stopped, Halt) else stopped
    state = _state(counts + Counter(joins), kind)
    told = summary(counts)
    if halt and (state in _BY_HALT or kind is HaltReason.EXCEEDED):
        told = f"{halt.why}; {told}"
    return state, told


def history_entry(state: PlanState, halt: Halt | None, now: datetime) -> HistoryEntry | None:
    """Return the entry of the history for a halt without a request on record, or None.

    ``state`` is the final state of the plan: a halt that came too late to change it has no entry.
    """
    by = halt.by if halt else None
    if by is None or state not in (PlanState.PAUSED, PlanState.CANCELLED):
        return None
    return HistoryEntry(verb=by.verb, who=by.who, at=now, why=by.why)


def cancelled(states: Mapping[str, ActionState], message: str) -> list[Report]:
    """Return the reports of the actions that have not started when their plan is cancelled."""
    old, new = ActionState.PENDING, ActionState.CANCELLED
    rest = (uuid for uuid, state in states.items() if state is old)
    return [Report(uuid=uuid, old=old, state=new, message=message) for uuid in rest]


def summary(counts: Counter[ActionState]) -> str:
    """Return a sentence that counts actions by state."""
    told = [f"{counts[state]} {word}" for state, word in _WORDS.items() if counts[state]]
    return ", ".join(told) or "nothing to do"


def _state(counts: Counter[ActionState], stopped: HaltReason | None) -> PlanState:
    if stopped is HaltReason.CANCELLED:
        return PlanState.CANCELLED
    if stopped in _UNFINISHED and any(counts[state] for state in OPEN):
        return _UNFINISHED[stopped]
    well = all(state in WELL for state in counts if counts[state])
    return PlanState.SUCCEEDED if well else PlanState.FAILED
