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
from applier.api.v2.answers import show_new
from applier.api.v2.operation import Operation, moment
from applier.api.v2.plans import require_allowed
from applier.notifications.schema import SCHEMA as EVENT
from applier.operations import durations as recorded
from applier.operations import export_import, removal
from applier.operations import services as registered
from planner.errors import PlannerError, accepted
from planner.making import registry, saved

_RULE = "record:administer"
#: The number of deleted plans after which a purge begins no further transaction, and answers.
PURGED = 1000


@Operation("GET /v2/plans/{plan}/export", _RULE, "plans.export", {"type": "object"})
def exported_plan(call: Call) -> Any:
    """Return a plan that nobody runs with its attempts, requests, history and all parameters, for
    POST /v2/imports elsewhere.
    """
    return export_import.exported(call.assembly, call.names["plan"])


@Operation(
    "POST /v2/imports", _RULE, "plans.import", takes_document=True, status=201, answer=schemas.PLAN
)
def imported_plan(call: Call) -> None:
    """Import a plan that was exported, with its attempts, requests and history."""
    made = export_import.import_from(
        call.assembly, call.operator, call.document, lambda plan: require_allowed(call, plan)
    )
    show_new(call, made)


@Operation("GET /v2/durations", "plan:read", "durations.list", schemas.list_of(schemas.DURATION))
def durations(call: Call) -> dict[str, Any]:
    """List how long actions took, by type, size and node: what forecasts expect."""
    return {"items": [known._asdict() for known in recorded.listed(call.assembly)]}


@Operation(
    "POST /v2/durations",
    _RULE,
    "durations.import",
    takes_document=True,
    answer=schemas.TOLD,
)
def imported_durations(call: Call) -> dict[str, Any]:
    """Let forecasts use durations of another record. They replace those imported before for the
    same action types.
    """
    recorded.import_from(call.assembly, call.operator, call.document)
    return {"messages": call.told}


@Operation("GET /v2/durations/export", "plan:read", "durations.export", recorded.SCHEMA)
def exported_durations(call: Call) -> Any:
    """Return the durations that were measured here, for POST /v2/durations elsewhere."""
    return recorded.exported(call.assembly)


@Operation(
    "POST /v2/purge",
    _RULE,
    "plans.purge",
    body=schemas.record("purge_before", before=schemas.TIME),
    answer=schemas.record("purged", more=bool, messages=[str]),
)
def purge(call: Call) -> dict[str, Any]:
    """Delete for good the plans that ended or were removed before a time, oldest first. After about
    1000 plans it answers that there are more.
    """
    before = moment(call.body, "before")
    done = removal.purge(call.assembly, call.operator, before, most=PURGED)
    return {"more": not done, "messages": call.told}


_PLUGIN = schemas.record("action_type", name=str, summary=str)
_PLANNER = schemas.record("planner", name=str, kind=str | None, summary=str)


@Operation("GET /v2/planners", "product:read", "planners.list", schemas.list_of(_PLANNER))
def planners(_call: Call) -> dict[str, Any]:
    """List the installed planners, and the kind of document that each reads."""
    return {"items": [_planner(name) for name in registry.names(registry.PLANNERS)]}


def _planner(name: str) -> dict[str, Any]:
    try:
        planner = registry.planner(name)
    except PlannerError as reason:
        return {"name": name, "kind": None, "summary": str(reason)}
    return {"name": name, "kind": planner.KIND, "summary": _summary(planner)}


def _summary(plugin: type) -> str:
    return (inspect.getdoc(plugin) or "").partition("\n")[0]


@Operation("GET /v2/action-types", "product:read", "action_types.list", schemas.list_of(_PLUGIN))
def action_types(call: Call) -> dict[str, Any]:
    """List the installed action types; /v2/schemas has their parameters."""
    found, types = [], call.assembly.action_types
    for name in types:
        try:
            summary = _summary(types[name])
        except PlannerError as reason:
            summary = str(reason)
        found.append({"name": name, "summary": summary})
    return {"items": found}


@Operation(
    "GET /v2/schemas",
    "product:read",
    "schemas.list",
    schemas.record("schema_names", documents=[str], action_types=[str]),
)
def schema_names(call: Call) -> dict[str, Any]:
    """List the names of JSON Schemas: of documents, and of action types."""
    types = call.assembly.action_types
    return {"documents": sorted(_documents()), "action_types": list(types)}


@Operation(
    "GET /v2/schemas/{name}",
    "product:read",
    "schemas.get",
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


@Operation("GET /v2/services", "service:read", "services.list", schemas.list_of(schemas.SERVICE))
def services(call: Call) -> dict[str, Any]:
    """List the applier services that use this record, latest heartbeat first."""
    found = call.store.services()
    return {"items": [schemas.as_json(one) for one in found]}


@Operation("GET /v2/workers", "service:read", "workers.list", schemas.list_of(schemas.WORKER))
def workers(call: Call) -> dict[str, Any]:
    """List the workers that use this record, by name; silent_s is how many seconds ago each was
    heard of.
    """
    return {"items": [schemas.as_json(worker) for worker in call.store.workers()]}


@Operation(
    "POST /v2/workers/{worker}/drain",
    "worker:drain",
    "workers.drain",
    body=schemas.mapping({}),
    answer=schemas.record("drained_worker", worker=schemas.WORKER, messages=[str]),
)
def drain(call: Call) -> dict[str, Any]:
    """Tell a worker to take no more jobs; it ends when it has none. A repeated request changes
    nothing.
    """
    found = registered.drain(call.assembly, call.operator, call.names["worker"])
    return {"worker": schemas.as_json(found), "messages": call.told}
