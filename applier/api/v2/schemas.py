# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas of requests and responses, besides those of documents and plans."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeVar

from applier.operations.creation import POLICIES
from planner.plan.states import ActionState, PlanState
from planner.schemas import ranges

Result = TypeVar("Result")
Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
TEXT_OR_NONE: Schema = {"type": ["string", "null"]}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer", "minimum": 1, "maximum": ranges.MOST}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}
WHY: Schema = {"type": "string", "minLength": 1, "maxLength": 2000}
LINES: Schema = {"type": "array", "items": TEXT}
PLAN_STATE: Schema = {"type": "string", "enum": [str(state) for state in PlanState]}
ACTION_STATE: Schema = {"type": "string", "enum": [str(state) for state in ActionState]}
LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": 1000}
COUNT: Schema = {"type": "integer", "minimum": 0}


def mapping(required: Mapping[str, Schema], **optional: Schema) -> Schema:
    """Return the schema of a mapping with these fields and no others."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def list_of(name: str, item: Schema, **more: Schema) -> Schema:
    """Return the schema of a response with a list, which may have the URL of its next page."""
    return mapping({name: {"type": "array", "items": item}, **more}, next=TEXT)


def fields_of(value: Any, schema: Schema) -> dict[str, Any]:
    """Return the fields of a value that the schema of a mapping names, as JSON types."""
    return {name: as_json(getattr(value, name)) for name in schema["properties"]}


def as_json(value: Any) -> Any:
    """Return times, mappings and named tuples as JSON types, and any other value as it is."""
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: as_json(part) for name, part in value.items()}
    return value


REASON = mapping({}, why=WHY)
HALT = mapping({}, why=WHY, now=FLAG)
REASON_NEEDED = mapping({"why": WHY})
START = mapping({}, accept_drift=FLAG, at=TIME, in_window=FLAG, why=WHY)
SETTLE = mapping({"state": {"enum": ["SUCCEEDED", "FAILED"]}, "why": WHY})
LIMITS = mapping({"limits": {"type": "object", "minProperties": 1, "additionalProperties": WHOLE}})
LIMITS_WANTED = {**LIMITS, "properties": {**LIMITS["properties"], "why": WHY}}

#: The response to a change: the state that the plan has now, and the messages.
DONE = mapping({"uuid": TEXT, "state": PLAN_STATE, "messages": LINES})
SUMMARY = mapping(
    {
        "uuid": TEXT,
        "name": TEXT_OR_NONE,
        "planner": TEXT,
        "state": {"enum": [*PLAN_STATE["enum"], None]},
        "created_at": MOMENT,
        "updated_at": MOMENT,
        "cloud": TEXT_OR_NONE,
        "creator": TEXT_OR_NONE,
        "actions": {"type": "object", "additionalProperties": {"type": "integer"}},
        "start_at": MOMENT,
        "damage": TEXT_OR_NONE,
    }
)
PLAN: Schema = {"$ref": "#/components/schemas/plan"}
ACTION: Schema = {"$ref": "#/components/schemas/plan/properties/actions/items"}
ATTEMPT = mapping(
    {
        "number": {"type": "integer"},
        "state": {"enum": [*ACTION_STATE["enum"], None]},
        "outcome": TEXT_OR_NONE,
        "started_at": MOMENT,
        "ended_at": MOMENT,
        "message": TEXT_OR_NONE,
        "output": TEXT_OR_NONE,
    }
)
REQUEST = mapping(
    {
        "number": {"type": "integer"},
        "verb": TEXT,
        "who": TEXT,
        "why": TEXT_OR_NONE,
        "action": TEXT_OR_NONE,
        "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
        "created_at": MOMENT,
    }
)
SERVICE = mapping(
    {
        "uuid": TEXT,
        "host": TEXT,
        "pid": {"type": "integer"},
        "user": TEXT,
        "plans": {"type": "integer"},
        "started_at": MOMENT,
        "heartbeat_at": MOMENT,
        "cloud": TEXT,
    }
)
#: Settings of planning in a query, as ``--set`` has them.
SETTINGS: Schema = {
    "type": "array",
    "items": {"type": "string", "maxLength": 1000},
    "maxItems": 100,
    "description": "KEY=VALUE, such as migrate.parallelization=2, ordering=slots or "
    f"on_failure={'|'.join(POLICIES)}",
}
