# SPDX-License-Identifier: Apache-2.0
"""Action plans in Watcher's API."""

from __future__ import annotations

from functools import partial
from typing import Any

import falcon

from applier.api.endpoints import Call, Endpoint
from applier.api.v1 import requests
from applier.api.v1.forms import plan_form, plan_word
from applier.errors import PlanConflict
from applier.operations import plans, removal
from applier.store.plans import PlanHead, PlanKey
from planner.errors import InvalidTransition
from planner.plan.states import PlanState

#: The sort key of the store for each ``sort_key`` of Watcher's lists of plans.
KEYS = {
    "id": PlanKey.SAVED,
    "uuid": PlanKey.UUID,
    "audit_id": PlanKey.AUDIT,
    "audit_uuid": PlanKey.AUDIT,
    "strategy_id": PlanKey.STRATEGY,
    "strategy_uuid": PlanKey.STRATEGY,
    "strategy_name": PlanKey.STRATEGY,
    "state": PlanKey.STATE,
    "global_efficacy": PlanKey.EFFICACY,
    "hostname": PlanKey.HOST,
    "status_message": PlanKey.MESSAGE,
    "created_at": PlanKey.CREATED,
    "updated_at": PlanKey.UPDATED,
    "deleted_at": PlanKey.SAVED,
}
#: The changes of state that a patch may make, in Watcher's words.
ALLOWED = frozenset(
    {
        ("RECOMMENDED", "PENDING"),
        ("RECOMMENDED", "CANCELLED"),
        ("PENDING", "CANCELLED"),
        ("ONGOING", "CANCELLING"),
    }
)
#: Watcher's states of plans.
WORDS = frozenset(str(state) for state in PlanState if state is not PlanState.PAUSED)
_INTERNAL = (*requests.INTERNAL, "status_message")


def _page(call: Call, *, whole: bool) -> dict[str, Any]:
    """Return a page of plans, each with all its fields if ``whole``, else with few of them."""
    given = requests.arguments(call.request, ("audit_uuid", "strategy"))
    page = requests.page_of(given, KEYS)
    audit = given.get("audit_uuid")
    found = call.store.plan_heads(
        page,
        audit=requests.uuid_of("audit_uuid", audit) if audit else None,
        strategy=given.get("strategy"),
    )
    forms = [plan_form(head, call.request, whole=whole) for head in found]
    return requests.with_next(call.request, "action_plans", forms, page, given)


in_short = Endpoint("GET /v1/action_plans", "plan:read")(partial(_page, whole=False))
in_detail = Endpoint("GET /v1/action_plans/detail", "plan:read")(partial(_page, whole=True))


@Endpoint("GET /v1/action_plans/{uuid}", "plan:read")
def plan(call: Call) -> dict[str, Any]:
    """Answer with the plan."""
    return plan_form(_head(call), call.request)


@Endpoint("DELETE /v1/action_plans/{uuid}", "plan:delete", status=204)
def delete_plan(call: Call) -> None:
    """Mark the plan DELETED; raise falcon.HTTPBadRequest if it waits, runs or is paused."""
    head = _head(call)
    try:
        removal.delete(call.assembly, call.operator, call.store.load_plan(head.uuid))
    except (PlanConflict, InvalidTransition):
        text = f"Couldn't delete when state is '{_word(call)}'."
        raise falcon.HTTPBadRequest(description=text) from None


@Endpoint("PATCH /v1/action_plans/{uuid}", "plan:run")
def patch_plan(call: Call) -> dict[str, Any]:
    """Start the plan if its new state is PENDING; cancel it for CANCELLED and CANCELLING.

    Raises falcon.HTTPBadRequest for any other change: see :data:`ALLOWED`.
    """
    head, found = _head(call), requests.steps(call.request)
    requests.require_fields(found, internal=_INTERNAL)
    requests.require_word(found, WORDS)
    # Of several operations on the state, the last one counts.
    step = next((s for s in reversed(found) if s.path == "/state"), None)
    old = plan_word(head.state)
    new = str(step.value) if step else old
    if (old, new) not in ALLOWED:
        step = step or (found[-1] if found else None)
        raise requests.refused(step, f"State transition not allowed: ({old} -> {new})")
    try:
        if new == "PENDING":
            _start(call, head)
        else:
            plans.cancel(call.assembly, call.operator, call.store.load_plan(head.uuid), None)
    except (PlanConflict, InvalidTransition):
        reason = f"State transition not allowed: ({_word(call)} -> {new})"
        raise requests.refused(step, reason) from None
    after = _head(call)
    # A plan stays ONGOING until its applier has read the request; Watcher shows CANCELLING.
    asked = new if new == "CANCELLING" and after.state is PlanState.ONGOING else None
    return plan_form(after, call.request, state=asked)


@Endpoint("POST /v1/action_plans/{uuid}/start", "plan:run")
def start_plan(call: Call) -> dict[str, Any]:
    """Make a RECOMMENDED plan PENDING, so that an applier service runs it.

    Raises falcon.HTTPBadRequest for a plan in another state.
    """
    head = _head(call)
    try:
        _start(call, head)
    except (PlanConflict, InvalidTransition):
        text = f"Couldn't start when state is '{_word(call)}'."
        raise falcon.HTTPBadRequest(description=text) from None
    return plan_form(_head(call), call.request)


def _head(call: Call) -> PlanHead:
    """Return the plan without its actions; raises falcon.HTTPBadRequest or PlanNotFound."""
    return call.store.plan_head(requests.uuid_of("action_plan_uuid", call.names["uuid"]))


def _word(call: Call) -> str:
    """Return the state that the plan has now, in Watcher's words."""
    return plan_word(_head(call).state)


def _start(call: Call, head: PlanHead) -> None:
    """Start a plan; raises PlanConflict unless it is RECOMMENDED: Watcher starts no other."""
    plan = call.store.load_plan(head.uuid)
    if plan.state is not PlanState.RECOMMENDED:
        raise PlanConflict(plan.uuid, plan.state, f"the plan is {plan.state}")
    plans.start(call.assembly, call.operator, plan)
