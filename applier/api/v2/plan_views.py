# SPDX-License-Identifier: Apache-2.0
"""Views of a plan: graph, timeline, report, comparison, forecast, and requests to its runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import falcon

from applier.api.parts import Parts
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation, Resource
from applier.assembly import now
from applier.contracts import Request
from applier.operations import lookup, predictions
from applier.timeline.values import LaneKind
from planner.model import JOIN
from planner.safe_text import visible

_TIMES = schemas.mapping(
    {
        "uuid": schemas.TEXT,
        "name": schemas.TEXT_OR_NONE,
        "start_s": schemas.NUMBER,
        "end_s": schemas.NUMBER,
        "slack_s": schemas.NUMBER,
        "critical": schemas.FLAG,
    }
)
#: Schema of a forecast; times are seconds from the start.
FORECAST = schemas.mapping(
    {
        "uuid": schemas.TEXT,
        "name": schemas.TEXT_OR_NONE,
        "cloud": schemas.TEXT,
        "makespan_s": schemas.NUMBER,
        "cautious_makespan_s": schemas.NUMBER,
        "lower_bound_s": schemas.NUMBER,
        "durations": schemas.TEXT,
        "actions": {"type": "array", "items": _TIMES},
    }
)


class GraphV2(Resource):
    """The graph of a plan, as SVG."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Draw a plan as SVG: actions in their states, and the order between them.",
            media="image/svg+xml",
            answer=schemas.TEXT,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Draw a plan."""
        from planner.render import svg

        self.query(request)
        found = lookup.find_plan(self._parts.assembly.store, plan)
        _send(response, svg.render(found, lambda action: action.action_type != JOIN))


class TimelinePictureV2(Resource):
    """The timeline of a plan."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Draw as SVG when each action runs or ran, what it waits for, and what was "
            "planned.",
            query={"lanes": {"enum": [str(kind) for kind in LaneKind]}},
            media="image/svg+xml",
            answer=schemas.TEXT,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Answer with the timeline of a plan, drawn as SVG."""
        from applier.operations.timelines import timeline
        from applier.timeline import svg

        lanes = self.query(request).get("lanes")
        assembly = self._parts.assembly
        found = lookup.find_plan(assembly.store, plan)
        made = timeline(
            assembly,
            found,
            assembly.max_workers,
            now=now(),
            is_stored=True,
            kind=LaneKind(lanes) if lanes else None,
        )
        _send(response, svg.render(made))


class ReportPageV2(Resource):
    """The report of a plan."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Return the report of a plan: one HTML page to look at, to keep, or to send.",
            media="text/html",
            answer=schemas.TEXT,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Answer with the report as an HTML page."""
        from applier.report import content, page

        self.query(request)
        assembly = self._parts.assembly
        found = lookup.find_plan(assembly.store, plan)
        made = content.report(assembly, found, assembly.max_workers, now=now(), is_stored=True)
        response.content_type = "text/html; charset=utf-8"
        policy = f"{page.policy()}; frame-ancestors 'none'"
        response.set_header("Content-Security-Policy", policy)
        response.text = page.render(made)


class DifferencesV2(Resource):
    """What differs between a plan and another one."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Compare a plan with a newer one: actions, links, limits and makespan.",
            answer={"type": "object"},
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(
        self, request: falcon.Request, response: falcon.Response, plan: str, new: str
    ) -> None:
        """Compare two plans."""
        from applier.operations import difference_values, differences

        self.query(request)
        assembly = self._parts.assembly
        old, other = (lookup.find_plan(assembly.store, name) for name in (plan, new))
        made = differences.compared(assembly, old, other, assembly.max_workers)
        response.media = difference_values.as_dict(made, assembly.action_types)


class SimulationV2(Resource):
    """The forecast of a plan."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="Predict when each open action starts and ends, and what decides the end.",
            query={"max_workers": schemas.WHOLE},
            answer=FORECAST,
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Predict a run."""
        query = self.query(request)
        assembly = self._parts.assembly
        found = lookup.find_plan(assembly.store, plan)
        durations = predictions.past_durations(assembly).of(found)
        workers = query.get("max_workers") or assembly.max_workers
        made = predictions.predicted(assembly, found, durations, workers)
        response.media = {
            **predictions.as_dict(found, made),
            "durations": predictions.sentence(durations),
        }


class RequestsV2(Resource):
    """The requests of operators to the runs of a plan."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="plan:read",
            summary="List the requests that were sent to the runs of a plan, oldest first.",
            answer=schemas.list_of("requests", schemas.REQUEST),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Answer with the requests to the runs of a plan, oldest first."""
        self.query(request)
        store = self._parts.assembly.store
        uuid = store.find_plan(plan)
        found, damaged = schemas.readable(lambda: store.requests(uuid))
        response.media = {"requests": [_request_of(one) for one in found], **damaged}


def _send(response: falcon.Response, picture: str) -> None:
    response.content_type = "image/svg+xml"
    # The picture needs its inline styles, and no scripts.
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    response.set_header("Content-Security-Policy", policy)
    response.text = visible(picture)


def _request_of(request: Request) -> dict[str, Any]:
    return {
        "number": request.number,
        "verb": request.verb,
        "who": request.who,
        "why": request.why,
        "action": request.action,
        "limits": dict(request.limits),
        "created_at": request.created_at.isoformat() if request.created_at else None,
    }
