# SPDX-License-Identifier: Apache-2.0
"""Makes and stores the plan that undoes another, also by itself where the configuration says so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from applier.contracts import REVERT, HistoryEntry
from applier.errors import ApplierError
from applier.rollback_plan import PLANNER, rollback
from applier.run import plan_cloud
from planner.errors import PlannerError, short
from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState

if TYPE_CHECKING:
    from applier.assembly import Assembly

LOG = logging.getLogger(__name__)

#: The option of ``[watcher_applier]``, with Watcher's name.
OPTION = "rollback_when_actionplan_failed"
#: The verb of the history.
VERB = "rollback"


def roll_back(assembly: Assembly, plan: ActionPlan, entry: HistoryEntry) -> ActionPlan:
    """Make a plan that undoes another in reverse order, and store it; both histories name both.

    ``entry`` is the first one of the new plan. Raises PlanConflict if nothing can be undone or the
    plan may still continue, OtherCloud, PlannerError, StoreError.
    """
    plugins, store = assembly.plugins, assembly.store
    plan_cloud.require_own(plan, plugins, assembly.cloud)

    def is_revertible(action: Action) -> bool:
        plugin = plugins.get(action.action_type)
        return plugin is not None and plugin.is_revertible(action.input_parameters)

    revert = plugins[REVERT]
    made = rollback(
        plan,
        is_revertible,
        lambda action: revert.touches(action.input_parameters),
        now=entry.at,
        new_id=lambda: str(uuid4()),
    )
    store.save_plan(made, history=entry)
    why = f"plan {made.uuid} undoes it"
    store.add_history(plan.uuid, HistoryEntry(verb=VERB, who=entry.who, at=entry.at, why=why))
    return made


def undoing(
    assembly: Assembly, uuid: str, *, who: str, tell: Callable[[str], None]
) -> ActionPlan | None:
    """Return a new plan that undoes one which FAILED, if the configuration says so and it may run.

    It is stored, and not started. ``tell`` gets a sentence about it, or why there is none.
    """
    if not assembly.conf.watcher_applier[OPTION]:
        return None
    try:
        plan = assembly.store.load_plan(uuid)
        if plan.state is not PlanState.FAILED or plan.planner == PLANNER:
            return None
        why = f"undoes plan {uuid}"
        entry = HistoryEntry(verb=VERB, who=who, at=datetime.now(UTC), why=why)
        made = roll_back(assembly, plan, entry)
        assembly.require_allowed(made)
    except (ApplierError, PlannerError) as reason:
        tell(f"Plan {short(uuid)} failed, and is not undone: {reason}.")
        return None
    tell(f"Plan {short(uuid)} failed: plan {short(made.uuid)} undoes it.")
    return made


def start_undoing(assembly: Assembly, uuid: str, *, who: str) -> None:
    """Queue the plan that undoes one which FAILED, if there is to be one; see :func:`undoing`."""
    made = undoing(assembly, uuid, who=who, tell=LOG.warning)
    if made is None:
        return
    at = datetime.now(UTC)
    entry = HistoryEntry(verb="start", who=who, at=at, why=OPTION)
    try:
        assembly.store.start_plan(made.uuid, None, now=at, history=entry)
    except ApplierError as reason:
        LOG.warning("Plan %s, which undoes plan %s, is not started: %s", made.uuid, uuid, reason)
