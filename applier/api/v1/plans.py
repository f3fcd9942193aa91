# SPDX-License-Identifier: Apache-2.0
"""Action plans in Watcher's API."""

from __future__ import annotations

from typing import ClassVar

import falcon

from applier.api.parts import Parts, operator_of
from applier.api.v1 import paging, patches
from applier.api.v1.forms import plan_form, plan_word
from applier.errors import PlanConflict, PlanNotFound
from applier.operations import plans, removal
from applier.store.pages import PlanHead, PlanKey
from planner.errors import InvalidTransition
from planner.model import ActionPlan
from planner.states import PlanState

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
_INTERNAL = (*patches.INTERNAL, "status_message")


class PlansV1:
    """The list of plans."""

    RULES: ClassVar = {"GET": "plan:read"}

    def __init__(self, parts: Parts, *, detail: bool = False) -> None:
        self._assembly, self._detail = parts.assembly, detail

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Answer with a page of plans."""
        given = paging.arguments(request, ("audit_uuid", "strategy"))
        page = paging.page_of(given, KEYS)
        audit = given.get("audit_uuid")
        try:
            found = self._assembly.store.plan_heads(
                page,
                audit=paging.uuid_of("audit_uuid", audit) if audit else None,
                strategy=given.get("strategy"),
            )
        except PlanNotFound as unknown:
            raise _not_found(unknown.reference) from None
        forms = [plan_form(head, request, whole=self._detail) for head in found]
        response.media = paging.with_next(request, "action_plans", forms, page, given)


class OnePlanV1:
    """The base class of the resources of one plan."""

    def __init__(self, parts: Parts) -> None:
        self._assembly = parts.assembly

    def _head(self, text: str) -> PlanHead:
        """Return a plan without its actions; raises falcon.HTTPBadRequest or HTTPNotFound."""
        uuid = paging.uuid_of("action_plan_uuid", text)
        try:
            return self._assembly.store.plan_head(uuid)
        except PlanNotFound:
            raise _not_found(uuid) from None

    def _plan(self, head: PlanHead) -> ActionPlan:
        return self._assembly.store.load_plan(head.uuid)


class PlanV1(OnePlanV1):
    """One plan."""

    RULES: ClassVar = {"GET": "plan:read", "PATCH": "plan:run", "DELETE": "plan:delete"}

    def on_get(self, request: falcon.Request, response: falcon.Response, uuid: str) -> None:
        """Answer with the plan."""
        response.media = plan_form(self._head(uuid), request)

    def on_delete(self, request: falcon.Request, response: falcon.Response, uuid: str) -> None:
        """Mark the plan DELETED; raise falcon.HTTPBadRequest if it waits, runs or is paused."""
        head, operator = self._head(uuid), operator_of(request, [])
        try:
            removal.delete(self._assembly.store, operator, self._plan(head))
        except (PlanConflict, InvalidTransition):
            word = plan_word(self._head(uuid).state)
            text = f"Couldn't delete when state is '{word}'."
            raise falcon.HTTPBadRequest(description=text) from None
        response.status = falcon.HTTP_NO_CONTENT

    def on_patch(self, request: falcon.Request, response: falcon.Response, uuid: str) -> None:
        """Start the plan if its new state is PENDING; cancel it for CANCELLED and CANCELLING.

        Raises falcon.HTTPBadRequest for any other change: see :data:`ALLOWED`.
        """
        head, found = self._head(uuid), patches.steps(request)
        patches.require_fields(found, internal=_INTERNAL)
        patches.require_word(found, WORDS)
        # Of several operations on the state, the last one counts.
        step = next((s for s in reversed(found) if s.path == "/state"), None)
        old = plan_word(head.state)
        new = str(step.value) if step else old
        if (old, new) not in ALLOWED:
            step = step or (found[-1] if found else None)
            reason = f"State transition not allowed: ({old} -> {new})"
            raise patches.refused(step, reason)
        self._change(request, head, step, new)
        after = self._head(uuid)
        # A plan stays ONGOING until its applier has read the request; Watcher shows CANCELLING.
        asked = new if new == "CANCELLING" and after.state is PlanState.ONGOING else None
        response.media = plan_form(after, request, state=asked)

    def _change(
        self, request: falcon.Request, head: PlanHead, step: patches.Step | None, new: str
    ) -> None:
        operator, plan = operator_of(request, []), self._plan(head)
        try:
            if new == "PENDING":
                _require_recommended(plan)
                plans.start(self._assembly, operator, plan)
            else:
                plans.cancel(self._assembly, operator, plan, None)
        except (PlanConflict, InvalidTransition):
            word = plan_word(self._head(head.uuid).state)
            reason = f"State transition not allowed: ({word} -> {new})"
            raise patches.refused(step, reason) from None


class StartV1(OnePlanV1):
    """The start of a plan."""

    RULES: ClassVar = {"POST": "plan:run"}

    def on_post(self, request: falcon.Request, response: falcon.Response, uuid: str) -> None:
        """Make a RECOMMENDED plan PENDING, so that an applier service runs it.

        Raises falcon.HTTPBadRequest for a plan in another state.
        """
        head, operator = self._head(uuid), operator_of(request, [])
        try:
            plan = self._plan(head)
            _require_recommended(plan)
            plans.start(self._assembly, operator, plan)
        except (PlanConflict, InvalidTransition):
            word = plan_word(self._head(uuid).state)
            text = f"Couldn't start when state is '{word}'."
            raise falcon.HTTPBadRequest(description=text) from None
        response.media = plan_form(self._head(uuid), request)


def _require_recommended(plan: ActionPlan) -> None:
    """Raise PlanConflict unless a plan is RECOMMENDED: Watcher starts no other plan."""
    if plan.state is not PlanState.RECOMMENDED:
        raise PlanConflict(plan.uuid, plan.state, f"the plan is {plan.state}")


def _not_found(uuid: str) -> falcon.HTTPNotFound:
    return falcon.HTTPNotFound(description=f"ActionPlan {uuid} could not be found")
