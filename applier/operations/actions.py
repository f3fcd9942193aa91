# SPDX-License-Identifier: Apache-2.0
"""Skip or abort an action, set the state of one in doubt, or complete a migration at once."""

from __future__ import annotations

from collections.abc import Iterator

from applier.assembly import Assembly, now
from applier.contracts import Request, undone_by
from applier.errors import PlanConflict
from applier.operations import Operator, refusals, who_runs
from applier.run import plan_cloud
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState, StateReason

#: The kinds of edges of the order graph to actions that need what is before them.
_NEEDS = frozenset({"need", "any"})


def skip(
    assembly: Assembly, operator: Operator, plan: ActionPlan, action: Action, why: str
) -> None:
    """Skip a PENDING action; if its plan is ONGOING, store that as a request for the claimant.

    The operator first gets lines about the actions that need it. Raises PlanConflict for an action
    or a plan in another state.
    """
    if action.state is not ActionState.PENDING:
        text = f"{action.label} is {action.state}: only PENDING actions can be skipped"
        raise PlanConflict(plan.uuid, plan.state, text)
    for line in consequences(plan, action):
        operator.say(line)
    store = assembly.store
    who_runs.retried(store, plan, lambda p: _skip(assembly, operator, p, action, why))


def _skip(
    assembly: Assembly, operator: Operator, plan: ActionPlan, action: Action, why: str
) -> None:
    store = assembly.store
    if plan.state is PlanState.ONGOING:
        request = Request(verb="skip", who=operator.name, why=why, action=action.uuid)
        asked = operator.entry("skip", why, action.uuid)
        store.add_request(plan.uuid, request, now=now(), history=asked)
        operator.say(who_runs.request_message(store, plan, f"to skip {action.label}"))
        operator.say("It is skipped once everything before it has ended, unless it starts first.")
        return
    message = f"skipped by {operator.name}: {why}"
    skipped = operator.entry("skip", why, action.uuid)
    store.skip_action(plan.uuid, action.uuid, now=now(), message=message, history=skipped)
    operator.say(f"{who_runs.named(plan)}: {action.label} is SKIPPED.")


def reword_skip(
    assembly: Assembly, operator: Operator, plan: ActionPlan, action: Action, why: str
) -> None:
    """Replace the reason of an action that an operator skipped; raises PlanConflict for others."""
    if action.state_reason is not StateReason.OPERATOR:
        text = f"{action.label} is {action.state}, and no operator has skipped it"
        raise PlanConflict(plan.uuid, plan.state, text)
    assembly.store.reword_skip(plan.uuid, action.uuid, message=f"skipped by {operator.name}: {why}")
    operator.say(f"{who_runs.named(plan)}: {action.label} has another reason.")


def consequences(plan: ActionPlan, action: Action) -> Iterator[str]:
    """List the actions that need an action directly, and count those that need it indirectly."""
    import networkx as nx

    from planner.plan.graph import order_graph

    direct = [later for later in plan.actions if action.uuid in _needed_by(later)]
    if not direct:
        yield f"No action needs {action.label}."
        return
    yield f"{action.label} will count as done for the actions that need it:"
    yield f"  {', '.join(a.label for a in direct)}"
    graph = order_graph(plan)
    edges = graph.edges(data=True)
    graph.remove_edges_from([(u, v) for u, v, data in edges if data["kind"] not in _NEEDS])
    reached = graph.subgraph(nx.descendants(graph, action.uuid))
    through = sum("action" in data for _, data in reached.nodes(data=True)) - len(direct)
    if through:
        yield f"  and, through these, {through} more"


def _needed_by(action: Action) -> set[str]:
    return {*action.needs, *(uuid for group in action.needs_any for uuid in group)}


def abort(
    assembly: Assembly, operator: Operator, plan: ActionPlan, action: Action, why: str | None
) -> None:
    """Store the request to stop an ONGOING action, which the claimant of the plan follows later.

    Raises PlanConflict for an action in another state, or if nobody runs the plan.
    """
    if action.state is not ActionState.ONGOING:
        text = f"{action.label} is {action.state}: only ONGOING actions can be aborted"
        if action.state is ActionState.PENDING:
            text += f". To leave it out: actionplan action skip {plan.uuid[:8]} {action.label}"
        raise PlanConflict(plan.uuid, plan.state, text)
    store = assembly.store
    request = Request(verb="abort", who=operator.name, why=why, action=action.uuid)
    asked = operator.entry("abort", why, action.uuid)
    store.add_request(plan.uuid, request, now=now(), history=asked)
    operator.say(who_runs.request_message(store, plan, f"to abort {action.label}"))


def force_complete(
    assembly: Assembly, operator: Operator, plan: ActionPlan, action: Action
) -> None:
    """Call the cloud to complete an ONGOING migration at once; the history says so before.

    Raises PlanConflict for any other action, OtherCloud, and ActionFailed if the cloud refuses.
    """
    if action.action_type != "migrate" or action.state is not ActionState.ONGOING:
        text = f"{action.label} ({action.action_type}) is {action.state}"
        text += ": only ONGOING migrations can be completed at once"
        raise PlanConflict(plan.uuid, plan.state, text)
    plan_cloud.require_own(plan, assembly.plugins, assembly.cloud)
    instance = str(action.resource_id)
    # Before the cloud is asked: a crash must not let it be asked twice.
    asked = operator.entry("force-complete", action=action.uuid)
    assembly.store.add_history(plan.uuid, asked)
    assembly.ask_cloud(lambda cloud: cloud.force_complete(instance))
    what = f"the cloud was asked to complete {action.label} at once"
    operator.say(f"{who_runs.named(plan)}: {what}.")


def settle(
    assembly: Assembly,
    operator: Operator,
    plan: ActionPlan,
    action: Action,
    new: ActionState,
    why: str,
) -> None:
    """Set an UNKNOWN action to SUCCEEDED or FAILED, or a FAILED one to SUCCEEDED.

    Raises PlanConflict for an action in another state, and while somebody runs the plan.
    """
    taken = refusals.already_running(assembly.store, plan.uuid)
    if taken:
        raise taken
    known = [ActionState.UNKNOWN]
    if new is ActionState.SUCCEEDED:
        known.append(ActionState.FAILED)
    if action.state not in known:
        text = f"{action.label} is {action.state}: only {' and '.join(known)} can be set to"
        raise PlanConflict(plan.uuid, plan.state, f"{text} {new}")
    message = f"set by {operator.name}: {why}"
    is_set = operator.entry("set", f"{new}: {why}", action.uuid)
    assembly.store.settle_action(
        plan.uuid,
        action.uuid,
        new,
        now=now(),
        message=message,
        undoes=undone_by(action),
        history=is_set,
    )
    operator.say(f"{who_runs.named(plan)}: {action.label} is {new}.")
    operator.say(f"Continue the plan: actionplan apply {plan.uuid[:8]}")
