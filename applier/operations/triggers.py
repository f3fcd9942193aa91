# SPDX-License-Identifier: Apache-2.0
"""Shows which outcome of which action triggered another action of a run."""

from __future__ import annotations

from collections.abc import Mapping

from applier.wording import one_line, some
from planner.model import Action, ActionPlan
from planner.states import Outcome

#: The maximum number of actions that a line names.
_MOST = 3


def because(action: Action, actions: Mapping[str, Action], outcomes: Mapping[str, Outcome]) -> str:
    """Return which outcomes of which actions have triggered this one; an empty text if none has.

    ``outcomes`` are those of the actions that have ended.

    >>> one = Action(uuid="u", action_type="nop", name="a")
    >>> two = Action(uuid="v", action_type="nop", triggers=(("u", (Outcome.CREATED,)),))
    >>> because(two, {"u": one, "v": two}, {"u": Outcome.CREATED})
    'because a was created'
    """
    fired = [
        f"{one_line(actions[uuid].label)} {_WORDS[outcome]}"
        for uuid, asked in action.triggers
        if (outcome := outcomes.get(uuid)) is not None and outcome in asked and uuid in actions
    ]
    return f"because {some(fired, _MOST, ', ')}" if fired else ""


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
