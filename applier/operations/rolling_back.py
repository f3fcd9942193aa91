# SPDX-License-Identifier: Apache-2.0
"""Makes and stores the plan that undoes another."""

from __future__ import annotations

from collections.abc import Callable

from applier.assembly import Assembly, now
from applier.contracts import REVERT
from applier.operations import Operator, claim
from applier.rollback.plan import rollback
from applier.run import plan_cloud
from planner.model import JOIN, ActionPlan


def roll_back(
    assembly: Assembly,
    operator: Operator,
    plan: ActionPlan,
    new_id: Callable[[], str],
) -> ActionPlan:
    """Make a plan that undoes another in reverse order, and store it.

    Raises PlanConflict while somebody runs the other plan, OtherCloud, PlannerError.
    """
    taken = claim.already_running(assembly.store, plan.uuid)
    if taken:
        raise taken
    plugins = assembly.plugins
    plan_cloud.require_own(plan, plugins, assembly.cloud)
    names = {a.action_type for a in plan.actions} - {JOIN}
    revertible = {n: plugins[n].REVERTIBLE for n in names & set(plugins)}
    revert = plugins[REVERT]
    made = rollback(
        plan,
        revertible,
        lambda action: revert.touches(action.input_parameters),
        now=now(),
        new_id=new_id,
    )
    of_it = operator.entry("rollback", f"undoes plan {plan.uuid}")
    assembly.store.save_plan(made, history=of_it)
    return made
