# SPDX-License-Identifier: Apache-2.0
"""The product and the record: planners, schemas, services; exports, imports, durations, purge."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from applier.api.endpoints import Call
from applier.api.errors import Problem
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation, moment, show_new
from applier.api.v2.plans import require_allowed
from applier.notifications.schema import SCHEMA as EVENT
from applier.operations import archiving, removal
from applier.operations import durations as recorded
from applier.operations import services as registered
from planner.errors import PlannerError, accepted
from planner.making import registry, saved

_RULE = "record:administer"
_DURATION = schemas.mapping(
    {
        "action_type": schemas.TEXT,
        "size": schemas.TEXT_OR_NONE,
        "node": schemas.TEXT_OR_NONE,
        "samples": schemas.COUNT,
        "imported": schemas.COUNT,
        "median_s": schemas.NUMBER,
        "nine_in_ten_s": schemas.NUMBER,
    }
)
#: The number of deleted plans after which a purge begins no further transaction, and answers.
PURGED = 1000


@Operation("GET /v2/plans/{plan}/export", _RULE, answer={"type": "object"})
def exported_plan(call: Call) -> Any:
    """Return a plan that nobody runs with its attempts, requests, history and all parameters, for
    POST /v2/imports elsewhere.
    """
    return archiving.exported(call.store, call.store.find_plan(call.names["plan"]))


@Operation("POST /v2/imports", _RULE, takes_document=True, status=201, answer=schemas.PLAN)
def imported_plan(call: Call) -> None:
    """Import a plan that was exported, with its attempts, requests and history."""
    made = archiving.import_from(
        call.store, call.document, call.operator, lambda plan: require_allowed(call, plan)
    )
    show_new(call, made)


@Operation("GET /v2/durations", "plan:read", answer=schemas.list_of("durations", _DURATION))
def durations(call: Call) -> dict[str, Any]:
    """List how long actions took, by type, size and node: what forecasts expect."""
    found = recorded.listed(call.store, list(call.assembly.action_types))
    return {"durations": [known._asdict() for known in found]}


@Operation(
    "POST /v2/durations",
    _RULE,
    takes_document=True,
    answer=schemas.mapping({"messages": schemas.LINES}),
)
def imported_durations(call: Call) -> dict[str, Any]:
    """Let forecasts use durations of another record. They replace those imported before for the
    same action types.
    """
    recorded.import_from(call.store, call.document, call.operator)
    return {"messages": call.told}


@Operation("GET /v2/durations/export", "plan:read", answer=recorded.SCHEMA)
def exported_durations(call: Call) -> Any:
    """Return the durations that were measured here, for POST /v2/durations elsewhere."""
    return recorded.exported(call.store, list(call.assembly.action_types))


@Operation(
    "POST /v2/purge",
    _RULE,
    body=schemas.mapping({"before": schemas.TIME}),
    answer=schemas.mapping({"more": schemas.FLAG, "messages": schemas.LINES}),
)
def purge(call: Call) -> dict[str, Any]:
    """Delete for good the plans that ended or were removed before a time, oldest first. After about
    1000 plans it answers that there are more.
    """
    before = moment(call.body, "before")
    done = removal.purge(call.assembly, call.operator, before, most=PURGED)
    return {"more": not done, "messages": call.told}


_PLUGIN = schemas.mapping({"name": schemas.TEXT, "summary": schemas.TEXT})
_PLANNER = schemas.mapping(
    {"name": schemas.TEXT, "kind": schemas.TEXT_OR_NONE, "summary": schemas.TEXT}
)
_WORKER = schemas.mapping(
    {
        "name": schemas.TEXT,
        "host": schemas.TEXT,
        "pid": {"type": "integer"},
        "user": schemas.TEXT,
        "version": schemas.TEXT,
        "cloud": schemas.TEXT_OR_NONE,
        "queues": schemas.LINES,
        "types": schemas.LINES,
        "places": schemas.COUNT,
        "running": schemas.COUNT,
        "draining": schemas.FLAG,
        "started_at": schemas.MOMENT,
        "silent_s": schemas.NUMBER,
    }
)


@Operation("GET /v2/planners", "product:read", answer=schemas.list_of("planners", _PLANNER))
def planners(_call: Call) -> dict[str, Any]:
    """List the installed planners, and the kind of document that each reads."""
    return {"planners": [_planner(name) for name in registry.names(registry.PLANNERS)]}


def _planner(name: str) -> dict[str, Any]:
    try:
        planner = registry.planner(name)
    except PlannerError as reason:
        return {"name": name, "kind": None, "summary": str(reason)}
    return {"name": name, "kind": planner.KIND, "summary": _summary(planner)}


def _summary(plugin: type) -> str:
    return (inspect.getdoc(plugin) or "").partition("\n")[0]


@Operation("GET /v2/action-types", "product:read", answer=schemas.list_of("action_types", _PLUGIN))
def action_types(call: Call) -> dict[str, Any]:
    """List the installed action types; /v2/schemas has their parameters."""
    found, types = [], call.assembly.action_types
    for name in types:
        try:
            summary = _summary(types[name])
        except PlannerError as reason:
            summary = str(reason)
        found.append({"name": name, "summary": summary})
    return {"action_types": found}


@Operation(
    "GET /v2/schemas",
    "product:read",
    answer=schemas.mapping({"documents": schemas.LINES, "action_types": schemas.LINES}),
)
def schema_names(call: Call) -> dict[str, Any]:
    """List the names of JSON Schemas: of documents, and of action types."""
    types = call.assembly.action_types
    return {"documents": sorted(_documents()), "action_types": list(types)}


@Operation(
    "GET /v2/schemas/{name}",
    "product:read",
    media="application/schema+json",
    answer={"type": "object"},
)
def schema(call: Call) -> bytes:
    """Return the JSON Schema of a kind of document, or of an action type."""
    known, types, name = _documents(), call.assembly.action_types, call.names["name"]
    if name not in known and name not in list(types):
        text = f"no schema {name!r}; {accepted(name, [*known, *types])}"
        raise Problem(404, "Schema not found", text)
    return json.dumps(known.get(name) or types[name].SCHEMA).encode()


def _documents() -> dict[str, Mapping[str, Any]]:
    """Return the schema of each kind of document, and that of events.

    Planners that cannot be imported have none.
    """
    found: dict[str, Mapping[str, Any]] = {"plan": saved.SCHEMA, "event": EVENT}
    for name in registry.names(registry.PLANNERS):
        try:
            planner = registry.planner(name)
        except PlannerError:
            continue
        found[planner.KIND] = planner.SCHEMA
    return found


@Operation("GET /v2/services", "service:read", answer=schemas.list_of("services", schemas.SERVICE))
def services(call: Call) -> dict[str, Any]:
    """List the applier services that use this record, latest heartbeat first."""
    found = call.store.services()
    return {"services": [schemas.fields_of(one, schemas.SERVICE) for one in found]}


@Operation("GET /v2/workers", "service:read", answer=schemas.list_of("workers", _WORKER))
def workers(call: Call) -> dict[str, Any]:
    """List the workers that use this record, by name; silent_s is how many seconds ago each was
    heard of.
    """
    return {"workers": [schemas.as_json(worker) for worker in call.store.workers()]}


@Operation(
    "POST /v2/workers/{worker}/drain",
    "worker:drain",
    body=schemas.mapping({}),
    answer=schemas.mapping({"worker": _WORKER, "messages": schemas.LINES}),
)
def drain(call: Call) -> dict[str, Any]:
    """Tell a worker to take no more jobs; it ends when it has none. A repeated request changes
    nothing.
    """
    found = registered.drain(call.store, call.operator, call.names["worker"])
    return {"worker": schemas.as_json(found), "messages": call.told}
