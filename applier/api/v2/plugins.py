# SPDX-License-Identifier: Apache-2.0
"""What the product knows: planners, action types, and the schemas of documents."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from applier.api.endpoints import Call
from applier.api.errors import Problem
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation
from applier.notifications.schema import SCHEMA as EVENT
from planner.errors import PlannerError, accepted
from planner.making import registry, saved

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
