# SPDX-License-Identifier: Apache-2.0
"""What is installed, and who runs plans: planners, action types, schemas, services."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

import falcon

from applier.api.errors import Problem
from applier.api.parts import Parts
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation, Resource
from applier.notifications.schema import SCHEMA as EVENT
from planner import registry, saved_schema
from planner.errors import PlannerError, accepted

_PLUGIN = schemas.mapping({"name": schemas.TEXT, "summary": schemas.TEXT})
_PLANNER = schemas.mapping(
    {"name": schemas.TEXT, "kind": schemas.TEXT_OR_NONE, "summary": schemas.TEXT}
)


class PlannersV2(Resource):
    """The installed planners."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="product:read",
            summary="List the installed planners, and the kind of document that each reads.",
            answer=schemas.list_of("planners", _PLANNER),
        )
    }

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List planners."""
        self.query(request)
        names = registry.names(registry.PLANNERS)
        response.media = {"planners": [_planner(name) for name in names]}


class ActionTypesV2(Resource):
    """The installed action types."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="product:read",
            summary="List the installed action types; /v2/schemas has their parameters.",
            answer=schemas.list_of("action_types", _PLUGIN),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List action types."""
        self.query(request)
        found = []
        for name in self._parts.assembly.action_types:
            try:
                summary = _summary(self._parts.assembly.action_types[name])
            except PlannerError as reason:
                summary = str(reason)
            found.append({"name": name, "summary": summary})
        response.media = {"action_types": found}


class SchemasV2(Resource):
    """The names of all schemas."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="product:read",
            summary="List the names of JSON Schemas: of documents, and of action types.",
            answer=schemas.mapping({"documents": schemas.LINES, "action_types": schemas.LINES}),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List names."""
        self.query(request)
        response.media = {
            "documents": sorted(documents()),
            "action_types": list(self._parts.assembly.action_types),
        }


class SchemaV2(Resource):
    """One schema."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="product:read",
            summary="Return the JSON Schema of a kind of document, or of an action type.",
            media="application/schema+json",
            answer={"type": "object"},
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response, name: str) -> None:
        """Return a schema."""
        self.query(request)
        known, types = documents(), self._parts.assembly.action_types
        if name not in known and name not in list(types):
            text = f"no schema {name!r}; {accepted(name, [*known, *types])}"
            raise Problem(404, "Schema not found", text)
        response.content_type = "application/schema+json"
        response.data = json.dumps(known.get(name) or types[name].SCHEMA).encode()


class ServicesV2(Resource):
    """The applier services."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="service:read",
            summary="List the applier services that use this record, latest heartbeat first.",
            answer=schemas.list_of("services", schemas.SERVICE),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List services."""
        self.query(request)
        found, damaged = schemas.readable(self._parts.assembly.store.services)
        response.media = {
            "services": [
                {
                    "uuid": service.uuid,
                    "host": service.host,
                    "pid": service.pid,
                    "user": service.user,
                    "plans": service.plans,
                    "started_at": service.started_at.isoformat(),
                    "heartbeat_at": service.heartbeat_at.isoformat(),
                    "cloud": service.cloud,
                }
                for service in found
            ],
            **damaged,
        }


def documents() -> dict[str, Mapping[str, Any]]:
    """Return the schema of each kind of document, and that of events.

    Planners that cannot be imported have none.
    """
    found: dict[str, Mapping[str, Any]] = {"plan": saved_schema.SCHEMA, "event": EVENT}
    for name in registry.names(registry.PLANNERS):
        try:
            planner = registry.planner(name)
        except PlannerError:
            continue
        found[planner.KIND] = planner.SCHEMA
    return found


def _planner(name: str) -> dict[str, Any]:
    try:
        planner = registry.planner(name)
    except PlannerError as reason:
        return {"name": name, "kind": None, "summary": str(reason)}
    return {"name": name, "kind": planner.KIND, "summary": _summary(planner)}


def _summary(plugin: type) -> str:
    return (inspect.getdoc(plugin) or "").partition("\n")[0]
