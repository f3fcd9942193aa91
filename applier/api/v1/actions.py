# SPDX-License-Identifier: Apache-2.0
"""The actions of plans in Watcher's API."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import falcon

from applier.api.parts import Parts, operator_of
from applier.api.v1 import paging, patches, versions
from applier.api.v1.forms import action_form, plan_word
from applier.errors import ActionNotFound, DamagedRecord, PlanConflict
from applier.notifications.watcher_words import action_word
from applier.operations import Operator, actions
from applier.store import Store
from applier.store.pages import ActionKey, PlannedAction
from planner.errors import InvalidTransition
from planner.model import Action, ActionPlan

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
Change = Callable[[Store, Operator, ActionPlan, Action, str], None]
#: The reason for a skip if the request has none.
NO_REASON = "no reason given"


class ActionsV1:
    """The list of actions."""

    RULES: ClassVar = {"GET": "plan:read"}

    def __init__(self, parts: Parts, *, detail: bool = False) -> None:
        self._assembly, self._detail = parts.assembly, detail

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Answer with a page of actions."""
        given = paging.arguments(request, ("action_plan_uuid", "audit_uuid"))
        plan, audit = given.get("action_plan_uuid"), given.get("audit_uuid")
        if plan and audit:
            text = "Filtering actions on both audit and action-plan is prohibited"
            raise falcon.HTTPBadRequest(description=text)
        page = paging.page_of(given, KEYS)
        try:
            found = self._assembly.store.planned_actions(
                page,
                plan=paging.uuid_of("action_plan_uuid", plan) if plan else None,
                audit=paging.uuid_of("audit_uuid", audit) if audit else None,
            )
        except ActionNotFound as unknown:
            raise _not_found(unknown.reference) from None
        types = self._assembly.action_types
        forms = [action_form(each, types, request, whole=self._detail) for each in found]
        response.media = paging.with_next(request, "actions", forms, page, given)


class ActionV1:
    """One action."""

    RULES: ClassVar = {"GET": "plan:read", "PATCH": "action:steer"}

    def __init__(self, parts: Parts) -> None:
        self._assembly = parts.assembly

    def on_get(self, request: falcon.Request, response: falcon.Response, uuid: str) -> None:
        """Answer with the action."""
        types = self._assembly.action_types
        response.media = action_form(self._planned(uuid), types, request)

    def on_patch(self, request: falcon.Request, response: falcon.Response, uuid: str) -> None:
        """Skip an action, or replace the reason of an earlier skip.

        Raises falcon.HTTPBadRequest for any other patch and below microversion 1.5. Raises
        falcon.HTTPConflict if the state of the action or of its plan does not allow it.
        """
        if not versions.knows_messages(request):
            text = f"API microversion {versions.SKIPPED} or higher is required."
            raise falcon.HTTPBadRequest(description=text)
        planned, found = self._planned(uuid), patches.steps(request)
        patches.require_fields(found, accepted=("state", "status_message"))
        patches.require_word(found, WORDS)
        if planned.action is None:
            raise DamagedRecord(f"action {planned.uuid}", [planned.damage or ""])
        wanted = {step.field: step.value for step in found}
        _require_skip(planned, planned.action, wanted)
        is_new = action_word(planned.action.state) != wanted.get("state", "SKIPPED")
        if is_new or wanted.get("status_message", ...) not in (..., planned.action.status_message):
            change = actions.skip if is_new else actions.reword_skip
            self._change(request, planned, change, str(wanted.get("status_message") or NO_REASON))
        types = self._assembly.action_types
        response.media = action_form(self._planned(uuid), types, request)

    def _planned(self, text: str) -> PlannedAction:
        uuid = paging.uuid_of("action_uuid", text)
        try:
            return self._assembly.store.planned_action(uuid)
        except ActionNotFound:
            raise _not_found(uuid) from None

    def _change(
        self, request: falcon.Request, planned: PlannedAction, change: Change, why: str
    ) -> None:
        store, operator = self._assembly.store, operator_of(request, [])
        plan = store.load_plan(planned.plan)
        action = next(each for each in plan.actions if each.uuid == planned.uuid)
        try:
            change(store, operator, plan, action, why)
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


def _not_found(uuid: str) -> falcon.HTTPNotFound:
    return falcon.HTTPNotFound(description=f"Action {uuid} could not be found")
