# SPDX-License-Identifier: Apache-2.0
"""Actions with any links to those before them, and what comes before what, computed slowly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from planner.plan.model import JOIN, Action, ActionPlan, Trigger
from planner.plan.states import Outcome

CHANGED = st.just((Outcome.CHANGED,))


def nothing(_i: int, _kind: str) -> dict[str, Any]:
    """Return no further fields of an action."""
    return {}


@st.composite
def linked(
    draw: st.DrawFn,
    most: int,
    kinds: Sequence[str],
    more: Callable[[int, str], Mapping[str, Any]] = nothing,
    *,
    least: int = 0,
    choices: bool = True,
    outcomes: st.SearchStrategy[tuple[Outcome, ...]] = CHANGED,
) -> tuple[Action, ...]:
    """Draw actions u0, u1, ... of some types, with parents, needs, joins and events.

    ``more`` returns the other fields of an action. With ``choices``, one of several may be enough,
    and what some have changed decides whether an action runs; a join passes needs on alone.
    """
    actions: list[Action] = []
    for i in range(draw(st.integers(least, most))):
        before = [action.uuid for action in actions]
        some = st.lists(st.sampled_from(before), unique=True, max_size=4) if before else st.just([])
        kind = draw(st.sampled_from(kinds))
        group = tuple(draw(some)) if choices else ()
        sources = draw(some) if choices and kind != JOIN else ()
        links = {"parents": tuple(draw(some)), "needs": tuple(draw(some))}
        triggers = tuple(Trigger(uuid, draw(outcomes)) for uuid in sources)
        fields = {"needs_any": (group,) if group else (), "triggers": triggers, **more(i, kind)}
        actions.append(Action(uuid=f"u{i}", action_type=kind, **links, **fields))
    return tuple(actions)


def choices(action: Action) -> set[str]:
    """Return all that an action has to wait for, and all of which one is enough."""
    return {*action.before(), *(uuid for group in action.needs_any for uuid in group)}


def earlier(
    made: ActionPlan, direct: Callable[[Action], Iterable[str]] = Action.before
) -> dict[str, set[str]]:
    """Map each action to all before it, directly or through others, by their uuids."""
    found: dict[str, set[str]] = {}
    for action in made.actions:
        links = set(direct(action))
        found[action.uuid] = links.union(*(found[uuid] for uuid in links))
    return found


def labels_earlier(
    made: ActionPlan, direct: Callable[[Action], Iterable[str]] = Action.before
) -> dict[str, set[str]]:
    """Map each action that is no join to all such before it, by their labels."""
    names = {a.uuid: a.label for a in made.actions if a.action_type != JOIN}
    before = earlier(made, direct)
    return {names[u]: {names[v] for v in before[u] if v in names} for u in names}
