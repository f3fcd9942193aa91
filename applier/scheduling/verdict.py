# SPDX-License-Identifier: Apache-2.0
"""Verdicts: given how everything before an action ended, does it run? Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from applier.contracts import Report
from planner.model import Action
from planner.states import OPEN, WELL, ActionState, Outcome, StateReason

#: Message of an action that was SKIPPED because nothing that sets it off did so.
NOT_TRIGGERED = "not triggered"


class OnFailure(StrEnum):
    """What the failure of an action does to the rest of its plan."""

    #: What needs it does not run; the rest goes on.
    SKIP_DESCENDANTS = "skip_descendants"
    #: Nothing new starts; what runs ends; the plan is PAUSED.
    PAUSE = "pause"
    #: Needs are ignored: parents give the order, nothing else.
    CONTINUE = "continue"


class End(NamedTuple):
    """How an action ended."""

    state: ActionState
    outcome: Outcome | None = None


def ends(actions: Iterable[Action]) -> dict[str, End]:
    """Return the end of each action that has ended, by uuid."""
    return {a.uuid: End(a.state, a.outcome) for a in actions if a.state not in OPEN}


class Verdicts:
    """Decides whether an action runs, given how others ended.

    ``actions`` are those of the plan by uuid; ``ended`` those that ended in an earlier run.
    """

    def __init__(
        self,
        actions: Mapping[str, Action],
        ended: Mapping[str, End],
        on_failure: OnFailure = OnFailure.SKIP_DESCENDANTS,
    ) -> None:
        self._actions, self._ends, self._on_failure = actions, dict(ended), on_failure
        self._bad = {u for u, end in ended.items() if end.state not in WELL}
        #: What did not run because of another -> the action where it began.
        self._causes: dict[str, str] = {}

    def __contains__(self, uuid: object) -> bool:
        """Has this action ended?"""
        return uuid in self._ends

    def well(self, uuid: str) -> bool:
        """Did an action that ended end well?"""
        return uuid not in self._bad

    @property
    def all_well(self) -> bool:
        """Did all that ended end well?"""
        return not self._bad

    def note(self, report: Report) -> None:
        """Remember how an action ended."""
        self._ends[report.uuid] = End(report.state, report.outcome)
        if report.state not in WELL:
            self._bad.add(report.uuid)

    def on(self, action: Action) -> Report | None:
        """Return how an action ends without running; None if it may run.

        All in ``before()`` has ended, and each group of ``needs_any`` has one that ended well or
        has ended whole. With ``continue`` failures decide nothing.
        """
        if self._bad and self._on_failure is not OnFailure.CONTINUE:
            for uuid in action.needs:
                if uuid in self._bad:
                    return self._blocked(action, uuid, "needs")
            for group in action.needs_any:
                if group and not any(u in self._ends and u not in self._bad for u in group):
                    return self._blocked(action, group[0], f"needs one of {len(group)}, first")
            for uuid, outcomes in action.blocked_by:
                if self._ends[uuid].outcome in outcomes:
                    return self._blocked(action, uuid, "is blocked by")
        if action.triggers and not self._fired(action):
            sources = (t.action for t in action.triggers)
            bad = next((u for u in sources if u in self._bad), None)
            if bad is not None and self._on_failure is not OnFailure.CONTINUE:
                return self._blocked(action, bad, "is triggered by")
            return ending(
                action, ActionState.SKIPPED, NOT_TRIGGERED, reason=StateReason.NOT_TRIGGERED
            )
        return None

    def _fired(self, action: Action) -> bool:
        return any(self._ends[t.action].outcome in t.outcomes for t in action.triggers)

    def _blocked(self, action: Action, bad: str, why: str) -> Report:
        cause = self._causes[action.uuid] = self._causes.get(bad, bad)
        message = f"{why} {self._actions[bad].label}"
        if cause != bad:
            message += f", which did not run because of {self._actions[cause].label}"
        message += f", which ended {self._ends[cause].state}"
        return ending(action, ActionState.FAILED_DEPENDENCIES, message)


def ending(
    action: Action,
    state: ActionState,
    message: str | None = None,
    *,
    reason: StateReason | None = None,
) -> Report:
    """Report an action that ends without having started."""
    return Report(
        uuid=action.uuid,
        old=ActionState.PENDING,
        state=state,
        state_reason=reason,
        message=message,
    )
