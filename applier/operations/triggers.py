# SPDX-License-Identifier: Apache-2.0
"""Shows which outcome of which action triggered another action of a run."""

from __future__ import annotations

from collections.abc import Iterable

from applier.contracts import Report
from applier.wording import one_line, some
from planner.model import Action, ActionPlan
from planner.states import ActionState, Outcome

#: The maximum number of actions that a line names.
_MOST = 3


class TriggerNames:
    """Stores the outcomes of actions, and names the triggers of each action that starts."""

    def __init__(self, plan: ActionPlan) -> None:
        self._labels = {a.uuid: a.label for a in plan.actions}
        self._outcomes = {a.uuid: a.outcome for a in plan.actions if a.outcome}

    def add(self, reports: Iterable[Report]) -> None:
        """Store the outcomes of a commit, before it is shown."""
        for report in reports:
            if report.outcome is not None and report.state is not ActionState.PENDING:
                self._outcomes[report.uuid] = report.outcome

    def describe(self, action: Action) -> str:
        """Return the name of an action that starts, its triggers, and its description.

        >>> one = Action(uuid="u", action_type="nop", name="a", outcome=Outcome.CREATED)
        >>> two = Action(uuid="v", action_type="nop", triggers=(("u", (Outcome.CREATED,)),))
        >>> names = TriggerNames(ActionPlan(uuid="p", planner="events", actions=(one, two)))
        >>> names.describe(one), names.describe(two)
        ('a  nop', 'v  because a was created  nop')
        """
        fired = [
            f"{one_line(self._labels[uuid])} {_WORDS[outcome]}"
            for uuid, asked in action.triggers
            if (outcome := self._outcomes.get(uuid)) is not None and outcome in asked
        ]
        told = f"because {some(fired, _MOST, ', ')}" if fired else ""
        does = action.description or action.action_type
        return "  ".join(filter(None, (one_line(action.label), told, one_line(does))))


def sources(plan: ActionPlan, action: Action) -> list[str]:
    """Return, for each action that can trigger this one, its outcome and the outcomes that trigger.

    >>> one = Action(uuid="u", action_type="nop", name="a", outcome=Outcome.OK)
    >>> two = Action(uuid="v", action_type="nop", triggers=(("u", (Outcome.CREATED,)),))
    >>> sources(ActionPlan(uuid="p", planner="events", actions=(one, two)), two)
    ['a is ok; it triggers this on created']
    """
    known = {a.uuid: a for a in plan.actions}
    found = [
        f"{one_line(source.label)} "
        f"{_WORDS[source.outcome] if source.outcome else f'is {source.state}'}; "
        f"it triggers this on {' or '.join(outcomes)}"
        for source, outcomes in ((known[uuid], asked) for uuid, asked in action.triggers)
    ]
    return [*found[:_MOST], *([f"+{len(found) - _MOST}"] if len(found) > _MOST else [])]


_WORDS = {
    Outcome.CHANGED: "changed",
    Outcome.CREATED: "was created",
    Outcome.OK: "is ok",
    Outcome.FAILED: "failed",
    Outcome.ERROR: "ended in error",
}
