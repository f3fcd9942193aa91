# SPDX-License-Identifier: Apache-2.0
"""Finds a plan or an action by its uuid, the beginning of its uuid, or its name."""

from __future__ import annotations

from applier.errors import ActionNotFound, PlanNotFound
from applier.store import Store
from planner.model import Action, ActionPlan

#: The number of characters of a uuid.
UUID_LENGTH = 36


def find_plan(store: Store, reference: str) -> ActionPlan:
    """Load a plan by its uuid, a unique beginning of it, its unique name, or ``last``.

    Raises PlanNotFound, also if several plans match, and DamagedRecord.
    """
    if len(reference) == UUID_LENGTH:
        # A whole uuid: no search is needed. A name may be as long.
        try:
            return store.load_plan(reference)
        except PlanNotFound:
            pass
    return store.load_plan(store.find_plan(reference))


def find_action(plan: ActionPlan, reference: str) -> Action:
    """Return an action of a plan by its uuid, a unique beginning of it, or its unique name.

    Raises ActionNotFound, also if several actions match.
    """
    exact = [a for a in plan.actions if reference in (a.uuid, a.name)]
    found = exact or [a for a in plan.actions if reference and a.uuid.startswith(reference)]
    if len(found) != 1:
        known = [f"{a.label} ({a.uuid[:8]})" for a in found]
        raise ActionNotFound(plan.uuid[:8], reference, known)
    return found[0]
