# SPDX-License-Identifier: Apache-2.0
"""``/v2/plans``: make, list, show and remove plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import falcon

from applier.api.parts import Parts, caller_of, operator_of
from applier.api.policies import COMMANDS
from applier.api.v2 import etags, idempotency, schemas
from applier.api.v2.operation import Operation, Resource, document_in
from applier.api.v2.request_times import moment
from applier.api.v2.shown_plan import show, show_new
from applier.operations import creation, lookup, removal
from applier.operations.creation import read_settings
from applier.store import TIMES, PlanFilters, PlanSummary
from planner import planning, saved, secret_references
from planner.documents import Document
from planner.errors import InvalidInput, Mistake, PlannerError
from planner.model import JOIN, ActionPlan
from planner.states import PlanState

#: How many plans are listed if the query has no ``limit``.
LISTED = 25
#: How many plans are counted at most, so that the answer does not wait for a count of all.
COUNTED = 1000
TOTAL = {"type": "integer", "maximum": COUNTED, "description": f"counted up to {COUNTED}"}
#: The filters of a list of plans.
FILTERS = {
    "state": schemas.PLAN_STATE,
    "planner": schemas.TEXT,
    "creator": schemas.TEXT,
    "since": schemas.TIME,
    "until": schemas.TIME,
}


class PlansV2(Resource):
    """All plans."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="List plans, the latest saved first; removed ones only with state=DELETED.",
            query={**FILTERS, "limit": schemas.LIMIT},
            answer=schemas.list_of("plans", schemas.SUMMARY, total=TOTAL),
        ),
        "POST": Operation(
            rule="plan:create",
            summary="Make a plan of a document, or store a saved plan. Nothing is run.",
            query={
                "planner": schemas.TEXT,
                "set": schemas.SETTINGS,
                "facts_from": schemas.TEXT,
                "dry_run": schemas.FLAG,
            },
            takes_document=True,
            idempotency_key=True,
            status=201,
            answer=schemas.PLAN,
        ),
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List plans."""
        query = self.query(request)
        filters = _filters(query)
        store = self._parts.assembly.store
        limit = query.get("limit", LISTED)
        found = store.list_plans(limit=limit, **filters)
        is_whole = len(found) < min(limit, COUNTED)
        total = len(found) if is_whole else store.count_plans(most=COUNTED, **filters)
        response.media = {"plans": [summary_of(summary) for summary in found], "total": total}

    @idempotency.once
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Make a plan of a document, and store it unless ``dry_run`` is set."""
        query = self.query(request)
        assembly = self._parts.assembly
        document = document_in(request)
        _refuse_files(document, query.get("planner"), self._parts)
        settings = read_settings(query.get("set", ()), "query set")
        document = creation.with_facts(document, assembly, query.get("facts_from"))
        plan = creation.planned(
            document,
            settings,
            assembly.conf,
            planner=query.get("planner"),
            cloud=assembly.cloud_name,
        )
        require_allowed(self._parts, request, plan)
        if query.get("dry_run"):
            show(self._parts, response, plan)
            return
        if document.is_plan:
            saved.require_new(plan, document)
        assembly.store.save_plan(plan, history=operator_of(request, []).entry("create"))
        show_new(self._parts, request, response, plan)


class PlanV2(Resource):
    """One plan."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Show a plan with its actions; the values of secret parameters are left out.",
            answer=schemas.PLAN,
        ),
        "DELETE": Operation(
            rule="plan:delete",
            summary="Remove a plan that is not running; it is marked DELETED.",
            status=204,
            if_match=True,
            idempotency_key=True,
        ),
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Show a plan."""
        self.query(request)
        store = self._parts.assembly.store
        found = lookup.find_plan(store, plan)
        if request.if_none_match:
            tag = etags.current(store, found)
            if tag in (f'"{given}"' for given in request.if_none_match):
                response.status = falcon.HTTP_304
                response.set_header("ETag", tag)
                return
        show(self._parts, response, found)

    @idempotency.once
    def on_delete(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Remove a plan."""
        self.query(request)
        self.body(request)
        store = self._parts.assembly.store
        found = lookup.find_plan(store, plan)
        etags.require(request, store, found)
        removal.delete(store, operator_of(request, []), found)
        response.status = falcon.HTTP_204


def require_allowed(parts: Parts, request: falcon.Request, plan: ActionPlan) -> None:
    """Raise HTTPForbidden if a plan works outside of the cloud or reads secrets, and may not."""
    if parts.policy.allows(caller_of(request), COMMANDS):
        return
    for action in plan.actions:
        if action.action_type == JOIN:
            continue
        if _works_outside(parts, action.action_type, action.input_parameters):
            what = f"{action.label!r} is of the type {action.action_type}, which runs commands or "
            what += "asks other systems than the cloud"
        elif secret_references.has_reference(action.input_parameters):
            what = f"{action.label!r} reads a secret of the applier"
        else:
            continue
        text = f"{what}: the rule {COMMANDS!r} of the policy does not let you store it"
        raise falcon.HTTPForbidden(title="Forbidden", description=text)


def _filters(query: Mapping[str, Any]) -> PlanFilters:
    """Return the filters of a query; raises InvalidInput for a time that is none."""
    times, mistakes = dict[str, datetime](), []
    for name in TIMES:
        if name in query:
            try:
                times[name] = moment(query[name])
            except ValueError as reason:
                mistakes.append(Mistake(str(reason), place=f"query {name}"))
    if mistakes:
        raise InvalidInput(mistakes)
    return PlanFilters(
        state=PlanState(query["state"]) if "state" in query else None,
        planner=query.get("planner"),
        creator=query.get("creator"),
        since=times.get("since"),
        until=times.get("until"),
    )


def summary_of(plan: PlanSummary) -> dict[str, Any]:
    """Return the summary of a plan as JSON types."""
    return {
        "uuid": plan.uuid,
        "name": plan.name,
        "planner": plan.planner,
        "state": None if plan.state is None else str(plan.state),
        "created_at": plan.created_at.isoformat() if plan.created_at else None,
        "updated_at": plan.updated_at.isoformat() if plan.updated_at else None,
        "cloud": plan.cloud,
        "creator": plan.creator,
        "actions": {str(state): number for state, number in plan.actions.items()},
        "start_at": plan.start_at.isoformat() if plan.start_at else None,
        "damage": plan.damage,
    }


def _refuse_files(document: Document, planner: str | None, parts: Parts) -> None:
    """Raise InvalidInput if a document names files, which would be read on the server's machine."""
    value = document.value
    if document.is_plan or not isinstance(value, Mapping):
        return
    try:
        files = planning.choose(value, planner, parts.assembly.conf).FILES
    except InvalidInput as wrong:
        raise wrong.located(document.locate) from wrong
    mistakes = [
        Mistake(f"no files are read for a request: send the content as {target!r}", path)
        for name, target in files.items()
        for path in [tuple(name.split("."))]
        if isinstance(found := _value_at(value, path), str) or (name != target and found)
    ]
    if mistakes:
        raise InvalidInput(mistakes).located(document.locate)


def _value_at(value: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of fields; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _works_outside(parts: Parts, name: str, parameters: Mapping[str, Any]) -> bool:
    """Return whether an action may use other machines and systems than those of the cloud.

    True for a type that is not installed.
    """
    try:
        plugin = parts.assembly.plugins[name]
    except (KeyError, PlannerError):
        return True
    inner = plugin.options_type(parameters)
    if inner != name:
        return _works_outside(parts, inner, {})
    return plugin.USES_MACHINES or plugin.works_outside(parameters)
