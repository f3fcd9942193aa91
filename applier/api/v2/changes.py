# SPDX-License-Identifier: Apache-2.0
"""Changes of a plan or an action by POST, such as start and skip.

The functions of :mod:`applier.operations` make or refuse them, and compose the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import falcon

from applier.api.parts import Parts, operator_of
from applier.api.v2 import etags, schemas
from applier.api.v2.idempotency import once
from applier.api.v2.operation import Operation, Resource
from applier.api.v2.request_times import moment
from applier.api.v2.shown_plan import show_new
from applier.assembly import Assembly
from applier.operations import (
    Operator,
    actions,
    approving,
    lookup,
    plans,
    removal,
    resuming,
    start_times,
)
from applier.operations.rolling_back import roll_back
from planner.errors import InvalidInput, Mistake
from planner.model import Action, ActionPlan
from planner.states import ActionState

Body = Mapping[str, Any]
#: Makes a change of a plan, given the body of the request; raises an ApplierError to refuse it.
OnPlan = Callable[[Assembly, Operator, ActionPlan, Body], None]
OnAction = Callable[[Assembly, Operator, ActionPlan, Action, Body], None]


def _asked(rule: str, summary: str, body: schemas.Schema) -> Mapping[str, Operation]:
    operation = Operation(
        rule=rule,
        summary=summary,
        body=body,
        if_match=True,
        idempotency_key=True,
        answer=schemas.DONE,
    )
    return {"POST": operation}


class PlanChangeV2(Resource):
    """A change of a plan, made by ``make``. ``body`` is the schema of the request body."""

    def __init__(
        self,
        parts: Parts,
        make: OnPlan,
        summary: str,
        body: schemas.Schema = schemas.REASON,
        rule: str = "plan:run",
    ) -> None:
        self._parts, self._make = parts, make
        self.OPERATIONS = _asked(rule, summary, body)

    @once
    def on_post(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Make the change, and answer with the state of the plan and the messages."""
        self.query(request)
        body, told = self.body(request), list[str]()
        assembly = self._parts.assembly
        found = lookup.find_plan(assembly.store, plan)
        etags.require(request, assembly.store, found)
        self._make(assembly, operator_of(request, told), found, body)
        response.media = _done(assembly, found.uuid, told)


class ActionChangeV2(Resource):
    """A change of an action, made by ``make``. ``body`` is the schema of the request body."""

    def __init__(
        self, parts: Parts, make: OnAction, summary: str, body: schemas.Schema = schemas.REASON
    ) -> None:
        self._parts, self._make = parts, make
        self.OPERATIONS = _asked("action:steer", summary, body)

    @once
    def on_post(
        self, request: falcon.Request, response: falcon.Response, plan: str, action: str
    ) -> None:
        """Make the change, and answer with the state of the plan and the messages."""
        self.query(request)
        body, told = self.body(request), list[str]()
        assembly = self._parts.assembly
        found = lookup.find_plan(assembly.store, plan)
        one = lookup.find_action(found, action)
        etags.require(request, assembly.store, found)
        self._make(assembly, operator_of(request, told), found, one, body)
        response.media = _done(assembly, found.uuid, told)


class RollbackV2(Resource):
    """The plan that undoes another."""

    OPERATIONS: Mapping[str, Operation] = {
        "POST": Operation(
            rule="plan:run",
            summary="Make and store a plan that undoes another in reverse order. Nothing is run.",
            body=schemas.mapping({}),
            if_match=True,
            idempotency_key=True,
            status=201,
            answer=schemas.PLAN,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @once
    def on_post(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Make and store the plan."""
        self.query(request)
        self.body(request)
        assembly = self._parts.assembly
        found = lookup.find_plan(assembly.store, plan)
        etags.require(request, assembly.store, found)
        made = roll_back(assembly, operator_of(request, []), found, lambda: str(uuid4()))
        show_new(self._parts, request, response, made)


def _done(assembly: Assembly, uuid: str, told: list[str]) -> dict[str, Any]:
    state = assembly.store.load_plan(uuid).state
    return {"uuid": uuid, "state": str(state), "messages": told}


def _start(assembly: Assembly, operator: Operator, plan: ActionPlan, body: Body) -> None:
    try:
        at = moment(body["at"]) if "at" in body else None
    except ValueError as reason:
        raise InvalidInput([Mistake(str(reason), ("at",))]) from reason
    in_window = body.get("in_window", False)
    at = start_times.wanted(assembly, operator, plan, at, in_window=in_window)
    plans.start(assembly, operator, plan, accept_drift=body.get("accept_drift", False), at=at)


def plan_changes(parts: Parts) -> dict[str, PlanChangeV2]:
    """Return the changes of a plan, by the last part of their path."""
    return {
        "start": PlanChangeV2(
            parts,
            _start,
            "Queue a plan: an applier service runs it, or does at a time, or in a window.",
            schemas.START,
        ),
        "approve": PlanChangeV2(
            parts,
            lambda a, o, p, body: approving.approve(a, o, p, body["why"]),
            "Approve a plan as it is now; it is void when anything of the plan differs.",
            schemas.REASON_NEEDED,
            rule="plan:approve",
        ),
        "pause": PlanChangeV2(
            parts,
            lambda a, o, p, body: plans.pause(
                a.store, o, p, body.get("why"), at_once=body.get("now", False)
            ),
            "Start no more actions of a running plan; those that run end, and unless now is set, "
            "so do the nodes of a rollout that have begun.",
            schemas.HALT,
        ),
        "resume": PlanChangeV2(
            parts,
            lambda a, o, p, body: resuming.resume(a, o, p, body.get("why")),
            "Go on with a plan that was paused, failed, was cancelled, or lost its applier.",
        ),
        "cancel": PlanChangeV2(
            parts,
            lambda a, o, p, body: plans.cancel(
                a, o, p, body.get("why"), at_once=body.get("now", False)
            ),
            "Cancel a plan: running actions are aborted or awaited, others never start; unless now "
            "is set, nodes of a rollout that have begun finish first.",
            schemas.HALT,
        ),
        "limits": PlanChangeV2(
            parts,
            lambda a, o, p, body: plans.set_limits(a, o, p, body["limits"], body.get("why")),
            "Change limits of a running plan, for actions that start from now on.",
            schemas.LIMITS_WANTED,
        ),
        "undelete": PlanChangeV2(
            parts,
            lambda a, o, p, body: removal.undelete(a.store, o, p, body.get("why")),
            "Bring a removed plan back, with the state that it had; its whole uuid is needed.",
            rule="plan:delete",
        ),
    }


def action_changes(parts: Parts) -> dict[str, ActionChangeV2]:
    """Return the changes of an action, by the last part of their path."""
    return {
        "skip": ActionChangeV2(
            parts,
            lambda a, o, p, action, body: actions.skip(a.store, o, p, action, body["why"]),
            "Skip an action that has not started; it counts as done for what needs it.",
            schemas.REASON_NEEDED,
        ),
        "abort": ActionChangeV2(
            parts,
            lambda a, o, p, action, body: actions.abort(a.store, o, p, action, body.get("why")),
            "Stop an action that runs.",
        ),
        "settle": ActionChangeV2(
            parts,
            lambda a, o, p, action, body: actions.settle(
                a.store, o, p, action, ActionState(body["state"]), body["why"]
            ),
            "Say how an action in doubt ended, after looking.",
            schemas.SETTLE,
        ),
        "force-complete": ActionChangeV2(
            parts,
            lambda a, o, p, action, _: actions.force_complete(a, o, p, action),
            "Let the cloud complete a running migration at once.",
            schemas.mapping({}),
        ),
    }
