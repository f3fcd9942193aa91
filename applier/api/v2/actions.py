# SPDX-License-Identifier: Apache-2.0
"""``/v2/plans/ID/actions``: actions with their attempts, why they wait, and what steers them."""

from __future__ import annotations

from typing import Any

import falcon

from applier.api.endpoints import Call
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation, change, next_page
from applier.errors import ActionNotFound
from applier.operations import actions as steering
from applier.operations import explanation, hidden_parameters
from applier.store.plans import ActionKey, Page
from planner.errors import InvalidInput, Mistake
from planner.plan.states import ActionState


@Operation(
    "GET /v2/plans/{plan}/actions",
    "plan:read",
    "actions.list",
    query={
        "state": schemas.ACTION_STATE,
        "action_type": schemas.TEXT,
        "limit": schemas.LIMIT,
        "after": schemas.TEXT,
        "fields": schemas.fields_of(schemas.ACTION),
    },
    answer=schemas.list_of(schemas.LISTED_ACTION, "action"),
)
def actions(call: Call) -> dict[str, Any]:
    """List the actions of a plan in schedule order.

    ``after`` is the uuid of the last one of the page before.
    """
    store, query = call.store, call.query
    plan = store.plan_head(store.find_plan(call.names["plan"])).uuid
    most, types = query.get("limit", 1000), call.assembly.action_types
    # One more tells whether there is a next page.
    page = Page(most + 1, ActionKey.SAVED, marker=query.get("after"))
    chosen = {name: query[name] for name in ("state", "action_type") if name in query}
    try:
        found = [one.action for one in store.planned_actions(page, plan=plan, **chosen)]
    except ActionNotFound as unknown:
        text = f"plan {plan[:8]} has no action {query['after']!r}"
        raise InvalidInput([Mistake(text, place="query after")]) from unknown
    shown = (hidden_parameters.action_without(action, types).to_dict() for action in found[:most])
    fields = schemas.chosen(schemas.ACTION, query.get("fields"))["properties"]
    items = [{name: value for name, value in one.items() if name in fields} for one in shown]
    answer: dict[str, Any] = {"items": items}
    if len(found) > most:
        answer["next"] = next_page(call, after=found[most - 1].uuid)
    return answer


@Operation(
    "GET /v2/plans/{plan}/actions/{action}", "plan:read", "actions.get", schemas.SHOWN_ACTION
)
def action(call: Call) -> dict[str, Any]:
    """Show an action with its output and every attempt."""
    plan, one = call.part
    shown = hidden_parameters.action_without(one, call.assembly.action_types)
    attempts = call.store.attempts(plan.uuid, one.uuid)
    return {
        **shown.to_dict(),
        "output": call.store.output(plan.uuid, one.uuid),
        "attempts_made": [schemas.as_json(attempt, schemas.ATTEMPT) for attempt in attempts],
    }


@Operation(
    "GET /v2/plans/{plan}/actions/{action}/output",
    "plan:read",
    "actions.output",
    media=falcon.MEDIA_TEXT,
    answer=schemas.TEXT,
)
def output(call: Call) -> str:
    """Return the output of the last attempt, or the last 64 KiB of it."""
    plan, one = call.part
    return call.store.output(plan.uuid, one.uuid) or ""


@Operation(
    "GET /v2/plans/{plan}/actions/{action}/why",
    "plan:read",
    "actions.why",
    query={"max_workers": schemas.WHOLE},
    answer=schemas.record("explanation", lines=[str]),
)
def why(call: Call) -> dict[str, Any]:
    """Explain when an action starts, what it waits for, or why it did not run.

    Of a plan of more than 10,000 actions, the start is forecast only with ``max_workers``.
    """
    assembly, (plan, one) = call.assembly, call.part
    workers = call.query.get("max_workers")
    return {"lines": explanation.explained(assembly, plan, one, workers)}


@change(
    "POST /v2/plans/{plan}/actions/{action}/skip",
    "action:steer",
    "actions.skip",
    schemas.REASON_NEEDED,
)
def skip(call: Call) -> None:
    """Skip an action that has not started; it counts as done for what needs it."""
    steering.skip(call.assembly, call.operator, call.plan, call.action, call.body["why"])


@change("POST /v2/plans/{plan}/actions/{action}/abort", "action:steer", "actions.abort")
def abort(call: Call) -> None:
    """Stop an action that runs."""
    steering.abort(call.assembly, call.operator, call.plan, call.action, call.body.get("why"))


@change(
    "POST /v2/plans/{plan}/actions/{action}/settle",
    "action:steer",
    "actions.settle",
    schemas.SETTLE,
)
def settle(call: Call) -> None:
    """Say how an action in doubt ended, after looking."""
    state, why = ActionState(call.body["state"]), call.body["why"]
    steering.settle(call.assembly, call.operator, call.plan, call.action, state, why)


@change(
    "POST /v2/plans/{plan}/actions/{action}/force-complete",
    "action:steer",
    "actions.force_complete",
    schemas.mapping({}),
)
def force_complete(call: Call) -> None:
    """Let the cloud complete a running migration at once."""
    steering.force_complete(call.assembly, call.operator, call.plan, call.action)
