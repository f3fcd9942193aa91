# SPDX-License-Identifier: Apache-2.0
"""``/v2/plans``: make, list, show, steer and remove plans.

The functions of :mod:`applier.operations` make or refuse a change, and compose the messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import falcon

from applier.api.access import COMMANDS
from applier.api.endpoints import Call
from applier.api.v2 import schemas
from applier.api.v2.answers import show, show_new
from applier.api.v2.operation import Operation, change, moment, next_page
from applier.assembly import Assembly
from applier.errors import PlanNotFound
from applier.operations import approving, creation, removal
from applier.operations import plans as steering
from applier.operations.creation import read_settings, roll_back
from applier.store import TIMES, PlanFilters
from planner.documents import Document
from planner.errors import InvalidInput, Mistake, PlannerError
from planner.making import planning, saved
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import PlanState
from planner.schemas import hidden_values

#: How many plans are listed if the query has no ``limit``.
LISTED = 25
#: How many plans are counted at most, so that the answer does not wait for a count of all.
COUNTED = 1000
TOTAL = {"type": "integer", "maximum": COUNTED, "description": f"counted up to {COUNTED}"}


@Operation(
    "GET /v2/plans",
    "plan:read",
    "plans.list",
    query={
        "state": schemas.PLAN_STATE,
        "name": schemas.TEXT,
        "search": {**schemas.TEXT, "description": "A part of the name, A to Z in capitals or not."},
        "planner": schemas.TEXT,
        "creator": schemas.TEXT,
        "since": schemas.TIME,
        "until": schemas.TIME,
        "limit": schemas.LIMIT,
        "after": schemas.TEXT,
        "fields": schemas.fields_of(schemas.SUMMARY),
    },
    answer=schemas.list_of(schemas.LISTED_PLAN, "plan", total=TOTAL),
)
def plans(call: Call) -> dict[str, Any]:
    """List plans, the latest saved first; removed ones only with state=DELETED.

    ``after`` is the uuid of the last one of the page before.
    """
    query, store = call.query, call.store
    limit, filters = query.get("limit", LISTED), _filters(query)
    try:
        # One more tells whether there is a next page.
        found = store.list_plans(limit=limit + 1, after=query.get("after"), **filters)
    except PlanNotFound as unknown:
        raise InvalidInput([Mistake(str(unknown), place="query after")]) from unknown
    is_whole = "after" not in query and len(found) <= min(limit, COUNTED)
    total = len(found) if is_whole else store.count_plans(most=COUNTED, **filters)
    chosen = schemas.chosen(schemas.SUMMARY, query.get("fields"))
    shown = [schemas.as_json(summary, chosen) for summary in found[:limit]]
    answer = {"items": shown, "total": total}
    if len(found) > limit:
        answer["next"] = next_page(call, after=found[limit - 1].uuid)
    return answer


@Operation(
    "POST /v2/plans",
    "plan:create",
    "plans.create",
    query={
        "planner": schemas.TEXT,
        "set": schemas.SETTINGS,
        "facts_from": schemas.TEXT,
        "dry_run": schemas.FLAG,
        "why": schemas.WHY,
    },
    takes_document=True,
    status=201,
    answer=schemas.PLAN,
)
def create(call: Call) -> None:
    """Make a plan of a document, or store a saved plan. Nothing is run.

    With ``dry_run``, the plan is not stored.
    """
    query, assembly, planner = call.query, call.assembly, call.query.get("planner")
    _refuse_files(call.document, planner, assembly)
    settings = read_settings(query.get("set", ()), "query set")
    document = creation.with_facts(call.document, assembly, query.get("facts_from"))
    plan = creation.planned(assembly, document, settings, planner)
    require_allowed(call, plan)
    if query.get("dry_run"):
        call.response.status = falcon.HTTP_200
        show(call, plan)
        return
    if document.is_plan:
        saved.require_new(plan, document)
    call.store.save_plan(plan, history=call.operator.entry("create", query.get("why")))
    show_new(call, plan)


@Operation("GET /v2/plans/{plan}", "plan:read", "plans.get", schemas.PLAN)
def plan(call: Call) -> None:
    """Show a plan with its actions; the values of secret parameters are left out."""
    call.store.of_one_moment(lambda: show(call, call.plan))


@Operation("DELETE /v2/plans/{plan}", "plan:delete", "plans.delete", status=204, if_match=True)
def delete(call: Call) -> None:
    """Remove a plan that is not running; it is marked DELETED."""
    removal.delete(call.assembly, call.operator, call.plan)


@change("POST /v2/plans/{plan}/start", "plan:run", "plans.start", schemas.START)
def start(call: Call) -> None:
    """Queue a plan: an applier service runs it, or does at a time, or in a window."""
    assembly, operator, plan, body = call.assembly, call.operator, call.plan, call.body
    given = {**body, "at": moment(body, "at") if "at" in body else None}
    steering.start(assembly, operator, plan, **given)


@change("POST /v2/plans/{plan}/approve", "plan:approve", "plans.approve", schemas.REASON_NEEDED)
def approve(call: Call) -> None:
    """Approve a plan as it is now; it is void when anything of the plan differs."""
    approving.approve(call.assembly, call.operator, call.plan, call.body["why"])


@change("POST /v2/plans/{plan}/pause", "plan:run", "plans.pause", schemas.HALT)
def pause(call: Call) -> None:
    """Start no more actions of a running plan; those that run end, and unless now is set, so do the
    nodes of a rollout that have begun.
    """
    at_once = call.body.get("now", False)
    steering.pause(call.assembly, call.operator, call.plan, call.body.get("why"), at_once=at_once)


@change("POST /v2/plans/{plan}/resume", "plan:run", "plans.resume")
def resume(call: Call) -> None:
    """Go on with a plan that was paused, failed, was cancelled, or lost its applier."""
    steering.resume(call.assembly, call.operator, call.plan, call.body.get("why"))


@change("POST /v2/plans/{plan}/cancel", "plan:run", "plans.cancel", schemas.HALT)
def cancel(call: Call) -> None:
    """Cancel a plan: running actions are aborted or awaited, others never start; unless now is set,
    nodes of a rollout that have begun finish first.
    """
    at_once = call.body.get("now", False)
    steering.cancel(call.assembly, call.operator, call.plan, call.body.get("why"), at_once=at_once)


@change("POST /v2/plans/{plan}/limits", "plan:run", "plans.set_limits", schemas.LIMITS)
def set_limits(call: Call) -> None:
    """Change limits of a running plan, for actions that start from now on."""
    limits, why = call.body["limits"], call.body.get("why")
    steering.set_limits(call.assembly, call.operator, call.plan, limits, why)


@change("POST /v2/plans/{plan}/undelete", "plan:delete", "plans.undelete")
def undelete(call: Call) -> None:
    """Bring a removed plan back, with the state that it had; its whole uuid is needed."""
    removal.undelete(call.assembly, call.operator, call.plan, call.body.get("why"))


@Operation(
    "POST /v2/plans/{plan}/rollback",
    "plan:run",
    "plans.roll_back",
    body=schemas.mapping({}),
    if_match=True,
    status=201,
    answer=schemas.PLAN,
)
def rollback(call: Call) -> None:
    """Make and store a plan that undoes another in reverse order. Nothing is run."""
    made = roll_back(call.assembly, call.operator, call.plan)
    show_new(call, made)


def require_allowed(call: Call, plan: ActionPlan) -> None:
    """Raise HTTPForbidden if a plan works outside of the cloud or reads secrets, and may not."""
    if call.parts.policy.allows(call.caller, COMMANDS):
        return
    for action in plan.actions:
        if action.action_type == JOIN:
            continue
        if _works_outside(call.assembly, action.action_type, action.input_parameters):
            what = f"{action.label!r} is of the type {action.action_type}, which runs commands or "
            what += "asks other systems than the cloud"
        elif hidden_values.has_reference(action.input_parameters):
            what = f"{action.label!r} reads a secret of the applier"
        else:
            continue
        text = f"{what}: the rule {COMMANDS!r} of the policy does not let you store it"
        raise falcon.HTTPForbidden(title="Forbidden", description=text)


def _filters(query: Mapping[str, Any]) -> PlanFilters:
    """Return the filters of a query; raises InvalidInput for what is no time with an offset."""
    times, mistakes = dict[str, datetime](), list[Mistake]()
    for name in TIMES:
        if name in query:
            try:
                times[name] = moment(query, name, is_query=True)
            except InvalidInput as wrong:
                mistakes += wrong.mistakes
    if mistakes:
        raise InvalidInput(mistakes)
    return PlanFilters(
        state=PlanState(query["state"]) if "state" in query else None,
        name=query.get("name"),
        search=query.get("search"),
        planner=query.get("planner"),
        creator=query.get("creator"),
        since=times.get("since"),
        until=times.get("until"),
    )


def _refuse_files(document: Document, planner: str | None, assembly: Assembly) -> None:
    """Raise InvalidInput if a document names files, which would be read on the server's machine."""
    value = document.value
    if document.is_plan or not isinstance(value, Mapping):
        return
    try:
        files = planning.choose(value, planner, assembly.conf).FILES
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


def _works_outside(assembly: Assembly, name: str, parameters: Mapping[str, Any]) -> bool:
    """Return whether an action may use other machines and systems than those of the cloud.

    True for a type that is not installed.
    """
    try:
        plugin = assembly.plugins[name]
    except (KeyError, PlannerError):
        return True
    inner = plugin.options_type(parameters)
    if inner != name:
        return _works_outside(assembly, inner, {})
    return plugin.USES_MACHINES or plugin.works_outside(parameters)
