# SPDX-License-Identifier: Apache-2.0
"""Compares two plans and their forecasts, and a new plan with the last one of the same name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from applier.errors import DamagedRecord, PlanNotFound
from applier.operations.predictions import ForecastParts, makespan_s, past_durations
from applier.store import Store
from applier.wording import count
from planner.differences.link_changes import LinkSet
from planner.differences.plans import PlanDifference, difference
from planner.guarding import with_facts_of
from planner.guards import NO_GUARDS
from planner.model import Action, ActionPlan
from planner.states import ActionState

#: A new plan is compared in detail with the last one if neither has more actions than this.
MOST_COMPARED = 500
#: The maximum number of kinds of differences that are counted then.
_SAID = 3


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two plans, their difference, and the forecast makespan of each if all its actions ran."""

    old: ActionPlan
    new: ActionPlan
    found: PlanDifference
    old_s: float
    new_s: float


def compared(
    parts: ForecastParts, old: ActionPlan, new: ActionPlan, max_workers: int
) -> Comparison:
    """Compare two plans, and forecast both with the same durations."""
    known, seconds = past_durations(parts), []
    for plan in (old, new):
        whole = replace(plan, actions=tuple(map(_not_started, plan.actions)))
        seconds.append(makespan_s(parts, whole, known.of(whole), max_workers))
    found = difference(old, new)
    return Comparison(old=old, new=new, found=found, old_s=seconds[0], new_s=seconds[1])


def _not_started(action: Action) -> Action:
    if action.state is ActionState.PENDING:
        return action
    return replace(action, state=ActionState.PENDING, outcome=None)


def counted(found: PlanDifference) -> list[str]:
    """Return a phrase with the number of differences for each kind that there is.

    >>> one = Action(uuid="u", action_type="nop")
    >>> counted(PlanDifference(removed=(one, one), paths=(("limits", "node:*"),)))
    ['2 removed', '1 field of the plan changed']
    """
    numbers = {
        "added": len(found.added),
        "removed": len(found.removed),
        "changed": len(found.changed),
        "moved": len(found.moved),
    }
    words = [f"{number} {word}" for word, number in numbers.items() if number]
    for word, links in (("new link", found.new_links), ("lost link", found.lost_links)):
        words += [count(sum(map(_size, links)), word)] if links else []
    fields = len(found.paths)
    words += [f"{count(fields, 'field')} of the plan changed"] if fields else []
    return words


def _size(links: LinkSet) -> int:
    members = 1 if links.kind == "needs_any" else len(links.before)
    return members * len(links.after)


def from_last_of_its_name(store: Store, plan: ActionPlan) -> str | None:
    """Return a sentence that compares a plan with the last stored one of its name.

    The plan itself is not stored yet. Of large plans only the digests are compared. Returns None if
    there is no other plan, or if it is damaged.
    """
    found = store.list_plans(name=plan.name, limit=1) if plan.name else []
    if not found or found[0].damage is not None:
        return None
    last = found[0]
    named = f"plan {last.uuid[:8]} of the same name"
    if last.digest == plan.digest:
        return f"Same as {named}."
    is_large = max(sum(last.actions.values()), len(plan.actions)) > MOST_COMPARED
    what = ""
    # A digest that covers the facts of a plan can be compared only with that of a whole plan.
    if not is_large or plan.facts_at or plan.guards != NO_GUARDS:
        try:
            before = store.load_plan(last.uuid)
        except (DamagedRecord, PlanNotFound):
            return None
        if with_facts_of(plan, before).digest == before.digest:
            return f"Same as {named}."
        if not is_large:
            differs = difference(before, plan)
            if differs.is_empty:
                return f"Same as {named}, in another order."
            what = f": {', '.join(counted(differs)[:_SAID])}"
    return f"Differs from {named}{what}; see: actionplan diff {last.uuid[:8]} {plan.uuid[:8]}"
