# SPDX-License-Identifier: Apache-2.0
"""Finds plans and actions as callers name them."""

from __future__ import annotations

from applier.errors import ActionNotFound, PlanNotFound
from applier.store import PlanStore
from planner.plan.model import JOIN, Action, ActionPlan

#: The names of at most so many actions are compared with one that there is not.
_COMPARED = 500
#: The number of characters of a uuid.
UUID_LENGTH = 36


def find_plan(store: PlanStore, reference: str) -> ActionPlan:
    """Load a plan by its uuid, a unique beginning of it, its unique name, ``last`` or ``last~1``.

    Raises PlanNotFound, also if several plans match, and DamagedRecord.
    """
    if len(reference) == UUID_LENGTH:
        # A whole uuid: no search is needed. A name may be as long.
        try:
            return store.load_plan(reference)
        except PlanNotFound:
            pass
    return store.load_plan(store.find_plan(reference))


def find_part(store: PlanStore, plan: str, action: str) -> tuple[ActionPlan, Action]:
    """Find a plan and an action of it, and load no more than explains the action.

    Raises as :func:`find_plan` and :func:`find_action`.
    """
    uuid = store.find_plan(plan)
    part = store.load_part(uuid, action)
    if not _matching(part, action) and store.long_plan(uuid) is None:
        part = store.load_plan(uuid)  # the message names the actions that there are
    return part, find_action(part, action)


def find_action(plan: ActionPlan, reference: str) -> Action:
    """Return an action of a plan by its uuid, a unique beginning of it, or its unique name.

    Raises ActionNotFound, also if several actions match.
    """
    found = _matching(plan, reference)
    if len(found) != 1:
        several = [f"{a.label} ({a.uuid[:8]})" for a in found]
        is_short = len(plan.actions) <= _COMPARED
        known = [a.label for a in plan.actions if a.action_type != JOIN] if is_short else []
        raise ActionNotFound(plan.uuid[:8], reference, several, known)
    return found[0]


def _matching(plan: ActionPlan, reference: str) -> list[Action]:
    exact = [a for a in plan.actions if reference in (a.uuid, a.name)]
    return exact or [a for a in plan.actions if reference and a.uuid.startswith(reference)]
