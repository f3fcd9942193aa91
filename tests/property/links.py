# SPDX-License-Identifier: Apache-2.0
"""What comes before what in a plan, computed slowly."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from planner.plan.model import JOIN, Action, ActionPlan


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
