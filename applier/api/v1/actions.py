# SPDX-License-Identifier: Apache-2.0
"""The actions of plans in Watcher's API."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import falcon

from applier.api.endpoints import Call, Endpoint
from applier.api.v1 import requests, versions
from applier.api.v1.forms import action_form, plan_word
from applier.assembly import Assembly
from applier.errors import PlanConflict
from applier.notifications.watcher import action_word
from applier.operations import Operator, actions
from applier.store.plans import ActionKey, PlannedAction
from planner.errors import InvalidTransition
from planner.plan.model import Action, ActionPlan

#: The sort key of the store for each ``sort_key`` of Watcher's lists of actions. There is none for
#: parameters, whose values may be secret.
KEYS = {
    "id": ActionKey.SAVED,
    "uuid": ActionKey.UUID,
    "action_plan_id": ActionKey.SAVED,
    "action_plan_uuid": ActionKey.PLAN,
    "action_type": ActionKey.TYPE,
    "state": ActionKey.STATE,
    "parents": ActionKey.PARENTS,
    "status_message": ActionKey.MESSAGE,
    "created_at": ActionKey.CREATED,
    "updated_at": ActionKey.UPDATED,
    "deleted_at": ActionKey.SAVED,
}
#: Watcher's states of actions.
WORDS = frozenset(
    {"PENDING", "ONGOING", "FAILED", "SUCCEEDED", "DELETED", "CANCELLED", "SUPERSEDED"}
    | {"CANCELLING", "SKIPPED"}
)
#: The states of plans whose actions can be skipped, in Watcher's words.
WAITING = ("RECOMMENDED", "PENDING")
#: An operation on an action, with a reason.
Change = Callable[[Assembly, Operator, ActionPlan, Action, str], None]
#: The reason for a skip if the request has none.
NO_REASON = "no reason given"


def _page(call: Call, *, whole: bool) -> dict[str, Any]:
    """Return a page of actions; without ``whole``, only the fields of a short list."""
    given = requests.arguments(call.request, ("action_plan_uuid", "audit_uuid"))
    plan, audit = given.get("action_plan_uuid"), given.get("audit_uuid")
    if plan and audit:
        text = "Filtering actions on both audit and action-plan is prohibited"
        raise falcon.HTTPBadRequest(description=text)
    page = requests.page_of(given, KEYS)
    found = call.store.planned_actions(
        page,
        plan=requests.uuid_of("action_plan_uuid", plan) if plan else None,
        audit=requests.uuid_of("audit_uuid", audit) if audit else None,
    )
    forms = [_form(each, call, whole=whole) for each in found]
    return requests.with_next(call.request, "actions", forms, page, given)


in_short = Endpoint("GET /v1/actions", "plan:read")(partial(_page, whole=False))
in_detail = Endpoint("GET /v1/actions/detail", "plan:read")(partial(_page, whole=True))


@Endpoint("GET /v1/actions/{uuid}", "plan:read")
def action(call: Call) -> dict[str, Any]:
    """Answer with the action."""
    return _form(_planned(call), call)


@Endpoint("PATCH /v1/actions/{uuid}", "action:steer")
def patch_action(call: Call) -> dict[str, Any]:
    """Skip an action, or replace the reason of an earlier skip.

    Raises falcon.HTTPBadRequest for any other patch and below microversion 1.5. Raises
    falcon.HTTPConflict if the state of the action or of its plan does not allow it.
    """
    if not versions.knows_messages(call.request):
        text = f"API microversion {versions.SKIPPED} or higher is required."
        raise falcon.HTTPBadRequest(description=text)
    planned, found = _planned(call), requests.steps(call.request)
    requests.require_fields(found, accepted=("state", "status_message"))
    requests.require_word(found, WORDS)
    wanted = {step.field: step.value for step in found}
    _require_skip(planned, planned.action, wanted)
    is_new = action_word(planned.action.state) != wanted.get("state", "SKIPPED")
    if is_new or wanted.get("status_message", ...) not in (..., planned.action.status_message):
        change = actions.skip if is_new else actions.reword_skip
        _change(call, planned, change, str(wanted.get("status_message") or NO_REASON))
    return _form(_planned(call), call)


def _form(planned: PlannedAction, call: Call, *, whole: bool = True) -> dict[str, Any]:
    return action_form(planned, call.assembly.action_types, call.request, whole=whole)


def _planned(call: Call) -> PlannedAction:
    return call.store.planned_action(requests.uuid_of("action_uuid", call.names["uuid"]))


def _change(call: Call, planned: PlannedAction, change: Change, why: str) -> None:
    plan = call.store.load_plan(planned.plan)
    action = next(each for each in plan.actions if each.uuid == planned.uuid)
    try:
        change(call.assembly, call.operator, plan, action, why)
    except (PlanConflict, InvalidTransition) as reason:
        raise falcon.HTTPConflict(description=str(reason)) from None


def _require_skip(planned: PlannedAction, action: Action, wanted: dict[str, object]) -> None:
    """Raise falcon.HTTPConflict unless a change skips the action, or rewords an earlier skip."""
    old, plan = action_word(action.state), plan_word(planned.plan_state)
    new = str(wanted.get("state", old))
    message = wanted.get("status_message", action.status_message)
    if new != old and (old, new) != ("PENDING", "SKIPPED"):
        text = f"State transition not allowed: ({old} -> {new})"
    elif new != old and plan not in WAITING:
        text = f"State update not allowed for actionplan state: {plan}"
    elif new == old and message != action.status_message and old != "SKIPPED":
        text = "status_message update only allowed when action state is SKIPPED"
    else:
        return
    raise falcon.HTTPConflict(description=text)
