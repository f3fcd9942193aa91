# SPDX-License-Identifier: Apache-2.0
"""Views of a plan: its graph, timeline, report, differences, history; and what a run would do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import falcon

from applier.api.endpoints import Call
from applier.api.errors import of_api
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation, next_page
from applier.assembly import now
from applier.operations import approving, drift, lookup, predictions, rehearsals
from applier.rehearsal import faults
from applier.run.prechecks import Precheck
from applier.timeline.values import LaneKind
from planner.errors import InvalidInput, Mistake
from planner.plan.model import JOIN
from planner.safe_text import visible

#: How many entries of the history are listed if the query has no ``limit``.
LISTED = 100
_SVG = "image/svg+xml"
#: A picture needs its inline styles, and no scripts.
_FOR_PICTURES = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_APPROVALS = schemas.list_of(
    schemas.APPROVAL,
    needed=schemas.COUNT,
    by_another=bool,
    max_age_s=float | None,
    missing=str | None,
)
_NUMBER = {"type": "integer", "minimum": 0, "maximum": schemas.WHOLE["maximum"]}
_OF_HISTORY: dict[str, Any] = {
    "query": {"after": _NUMBER, "before": _NUMBER, "limit": schemas.LIMIT},
    "answer": schemas.list_of(schemas.ENTRY, "history"),
}


@Operation(
    "GET /v2/plans/{plan}/graph.svg", "plan:read", "plans.graph", media=_SVG, answer=schemas.TEXT
)
def graph(call: Call) -> str:
    """Draw a plan as SVG: actions in their states, and the order between them."""
    from planner.render import svg

    picture = svg.render(call.plan, lambda action: action.action_type != JOIN)
    call.response.set_header("Content-Security-Policy", _FOR_PICTURES)
    return visible(picture)


@Operation(
    "GET /v2/plans/{plan}/timeline.svg",
    "plan:read",
    "plans.timeline",
    query={"lanes": {"type": "string", "enum": [str(kind) for kind in LaneKind]}},
    media=_SVG,
    answer=schemas.TEXT,
)
def timeline_picture(call: Call) -> str:
    """Draw as SVG when each action runs or ran, what it waits for, and what was planned."""
    from applier.operations.timelines import timeline
    from applier.timeline import svg

    lanes, assembly = call.query.get("lanes"), call.assembly
    made = timeline(
        assembly,
        call.plan,
        assembly.max_workers,
        now=now(),
        is_stored=True,
        kind=LaneKind(lanes) if lanes else None,
    )
    call.response.set_header("Content-Security-Policy", _FOR_PICTURES)
    return visible(svg.render(made))


@Operation(
    "GET /v2/plans/{plan}/report.html",
    "plan:read",
    "plans.report",
    media=falcon.MEDIA_HTML,
    answer=schemas.TEXT,
)
def report(call: Call) -> str:
    """Return the report of a plan: one HTML page to look at, to keep, or to send."""
    from applier.report import content, page

    assembly = call.assembly
    made = content.stored(assembly, call.plan.uuid, now=now())
    policy = f"{page.policy()}; frame-ancestors 'none'"
    call.response.set_header("Content-Security-Policy", policy)
    return page.render(made)


@Operation("GET /v2/plans/{plan}/diff/{new}", "plan:read", "plans.diff", {"type": "object"})
def diff(call: Call) -> dict[str, Any]:
    """Compare a plan with a newer one: actions, links, limits and makespan."""
    from applier.operations import differences

    assembly, old = call.assembly, call.plan
    new = lookup.find_plan(call.store, call.names["new"])
    made = differences.compared(assembly, old, new, assembly.max_workers)
    return differences.as_dict(made, assembly.action_types)


@Operation(
    "GET /v2/plans/{plan}/requests", "plan:read", "plans.requests", schemas.list_of(schemas.REQUEST)
)
def requests(call: Call) -> dict[str, Any]:
    """List the requests that were sent to the runs of a plan, oldest first."""
    uuid = call.store.find_plan(call.names["plan"])
    found = call.store.requests(uuid)
    return {"items": [schemas.as_json(one, schemas.REQUEST) for one in found]}


@Operation("GET /v2/plans/{plan}/approvals", "plan:read", "plans.approvals", _APPROVALS)
def approvals(call: Call) -> dict[str, Any]:
    """Show which approvals a plan needs, who approved it, and what is missing."""
    shown = {**approving.as_dict(call.assembly, call.plan)}
    missing = shown["missing"]
    return {"items": shown.pop("approvals"), **shown, "missing": missing and of_api(missing)}


@Operation("GET /v2/plans/{plan}/history", "plan:read", "plans.history", **_OF_HISTORY)
def plan_history(call: Call) -> dict[str, Any]:
    """List who changed a plan, when and why: the latest changes, oldest first.

    ``next`` has those before them.
    """
    return _history(call, call.store.find_plan(call.names["plan"]))


@Operation("GET /v2/history", "plan:read", "history.list", **_OF_HISTORY)
def history(call: Call) -> dict[str, Any]:
    """List who changed plans, when and why: the latest changes, oldest first.

    ``next`` has those before them.
    """
    return _history(call, None)


def _history(call: Call, plan: str | None) -> dict[str, Any]:
    limit, numbers = call.query.get("limit", LISTED), {**call.query}
    numbers.pop("limit", None)
    # One more tells whether there are earlier ones.
    found = call.store.history(plan, limit=limit + 1, **numbers)
    answer: dict[str, Any] = {
        "items": [schemas.as_json(entry, schemas.ENTRY) for entry in found[-limit:]]
    }
    if len(found) > limit:
        answer["next"] = next_page(call, before=found[1].number)
    return answer


#: The maximum of rehearsals times actions of the plan in one request.
MOST = 400_000
_TIMES = schemas.record(
    "forecast_action",
    uuid=str,
    name=str | None,
    start_s=float,
    end_s=float,
    slack_s=float,
    critical=bool,
)
#: Schema of a forecast; times are seconds from the start.
_FORECAST = schemas.record(
    "forecast",
    uuid=str,
    name=str | None,
    cloud=str,
    makespan_s=float,
    cautious_makespan_s=float,
    lower_bound_s=float,
    durations=str,
    actions=[_TIMES],
)
_FOUND = {"type": "string", "enum": [str(found) for found in Precheck]}
_CHECKED = schemas.record("checked_action", uuid=str, name=str | None, found=_FOUND, why=str | None)
_DRY_RUN = schemas.record(
    "dry_run",
    uuid=str,
    name=str | None,
    cloud=str,
    refused=bool,
    guard=str | None,
    moved=Sequence[str] | None,
    actions=[_CHECKED],
)
_UP_TO: schemas.Schema = {"type": "integer", "minimum": 1, "maximum": 100_000}
_FAULTS: schemas.Schema = {
    "type": "array",
    "items": {"type": "string", "maxLength": 1000},
    "maxItems": 100,
}


@Operation(
    "GET /v2/plans/{plan}/simulate",
    "plan:read",
    "plans.simulate",
    query={"max_workers": schemas.WHOLE},
    answer=_FORECAST,
)
def simulate(call: Call) -> dict[str, Any]:
    """Predict when each open action starts and ends, and what decides the end."""
    assembly, plan = call.assembly, call.plan
    durations = predictions.past_durations(assembly).of(plan)
    workers = call.query.get("max_workers") or assembly.max_workers
    made = predictions.predicted(assembly, plan, durations, workers)
    return {**predictions.as_dict(plan, made), "durations": predictions.sentence(durations)}


@Operation("GET /v2/plans/{plan}/dry-run", "plan:run", "plans.dry_run", _DRY_RUN)
def dry_run_of_plan(call: Call) -> dict[str, Any]:
    """Ask the cloud, as it is now, what is not needed, what would be refused, and what is not as
    planned. Nothing is changed.
    """
    shown = drift.as_dict(call.plan, drift.dry_run(call.assembly, call.plan))
    guard = shown["guard"]
    return {**shown, "guard": guard and of_api(guard)}


@Operation(
    "GET /v2/plans/{plan}/rehearsal",
    "plan:read",
    "plans.rehearse",
    query={"inject": _FAULTS, "times": _UP_TO, "seed": _UP_TO, "max_workers": schemas.WHOLE},
    answer={"type": "object"},
)
def rehearsal(call: Call) -> dict[str, Any]:
    """Rehearse a plan many times with faults such as fail:migrate=5%, slow:node:compute-3=3x or
    hang:NAME, and sum up how that ends.
    """
    query, assembly, plan = call.query, call.assembly, call.plan
    settings = rehearsals.Settings(
        faults=tuple(faults.read(",".join(query["inject"])) if query.get("inject") else ()),
        times=query.get("times", rehearsals.TIMES),
        seed=query.get("seed", 1),
    )
    most = max(1, MOST // max(1, len(plan.actions)))
    if settings.times > most:
        text = f"{settings.times} is more than {most}, the most for {len(plan.actions)} actions"
        raise InvalidInput([Mistake(text, place="query times")])
    made = rehearsals.rehearsed(
        assembly,
        plan,
        predictions.past_durations(assembly),
        settings,
        max_workers=query.get("max_workers") or assembly.max_workers,
    )
    return rehearsals.as_dict(made)
