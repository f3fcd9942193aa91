# SPDX-License-Identifier: Apache-2.0
"""The look of each state in all pictures: a colour, and a mark for those who see no colours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planner.model import ANCHOR, Action, ActionPlan
from planner.states import OPEN, WELL, ActionState


class Look(NamedTuple):
    """The name, colour and mark of a state in pictures."""

    word: str
    fill: str
    mark: str


#: Fuel's colours: white, yellow, blue, green, red, orange, violet, and cyan for anchors.
LOOKS: Mapping[str, Look] = {
    look.word: look
    for look in (
        Look("PENDING", "#ffffff", ""),
        Look("ANCHOR", "#d3f5f7", "="),
        Look("READY", "#fff7b0", ">"),
        Look("ONGOING", "#bfdcff", "…"),
        Look("SUCCEEDED", "#cdeec6", "✓"),
        Look("FAILED", "#ffb3ae", "✗"),
        Look("FAILED_DEPENDENCIES", "#ffd9a8", "!"),
        Look("SKIPPED", "#e2d4f7", "–"),
        Look("CANCELLED", "#e3e3e3", "/"),
        Look("UNKNOWN", "#ffc9ec", "?"),
        Look("REVERTED", "#e6dccb", "↩"),
        Look("REVERT_FAILED", "#ffb3ae", "↯"),
    )
}

#: The meaning of each word in LOOKS that is not a state.
MEANINGS = {
    "ANCHOR": "synchronisation point, PENDING",
    "READY": "PENDING, all predecessors have ended",
}


def looks(plan: ActionPlan) -> dict[str, Look]:
    """Map uuids to the look of each action.

    In a plan that has started, a PENDING action that waits only for a worker or a limit is shown as
    READY. A PENDING anchor has a look of its own.
    """
    states = {action.uuid: action.state for action in plan.actions}
    begun = any(state is not ActionState.PENDING for state in states.values())
    return {a.uuid: LOOKS[_word(a, states) if begun else _unbegun(a)] for a in plan.actions}


def _unbegun(action: Action) -> str:
    return "ANCHOR" if action.action_type == ANCHOR else str(action.state)


def _word(action: Action, states: Mapping[str, ActionState]) -> str:
    if action.state is not ActionState.PENDING or action.action_type == ANCHOR:
        return _unbegun(action) if action.state is ActionState.PENDING else str(action.state)
    ended = all(states[u] not in OPEN for u in action.before())
    well = all(states[u] in WELL for u in action.needs)
    chosen = all(any(states[u] in WELL for u in group) for group in action.needs_any)
    return "READY" if ended and well and chosen else "PENDING"
