# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of ``kind: solution``."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": ["string", "null"]}
_SECONDS = {"type": ["number", "null"], "minimum": 0}


def _known(**fields: Any) -> dict[str, Any]:
    """Return the schema of one table of facts, by id: any fields are allowed, these are read."""
    return {"type": "object", "additionalProperties": {"type": "object", "properties": fields}}


#: Fields that any document may carry, whatever its kind.
COMMON: dict[str, Any] = {
    "kind": {"type": "string", "description": "Chooses the reader; solution where left out."},
    "planner": {"type": "string", "description": "Name of the planner that is to plan this."},
    "name": {"type": ["string", "null"], "minLength": 1},
    "limits": {
        "type": "object",
        "description": "Token, or KIND:* for each of a kind by itself, to how many at once.",
        "propertyNames": {"pattern": "^[^:\\s]+(:.+)?$"},
        "additionalProperties": {"type": "integer", "minimum": 1},
    },
    "options": {"type": "object", "description": "Options of the planner, over the file's."},
}

ACTION: dict[str, Any] = {
    "type": "object",
    "required": ["action_type"],
    "additionalProperties": False,
    "properties": {
        "name": {
            "type": ["string", "null"],
            "minLength": 1,
            "description": "Unique; a type and number where left out.",
        },
        "action_type": {"type": "string", "minLength": 1},
        "resource_id": {"type": ["string", "null"], "minLength": 1},
        "input_parameters": {"type": ["object", "null"]},
        "touches": {
            "type": "array",
            "items": {"type": "string"},
            "description": "[EFFECT ]KIND:ID; what the action type says where left out.",
        },
        "estimate_s": _SECONDS,
        "timeout_s": {"type": ["number", "null"], "exclusiveMinimum": 0},
        "retries": {"type": "integer", "minimum": 0},
    },
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "solution",
    "description": "Actions that should be done, in the order in which they were found.",
    "type": "object",
    "required": ["actions"],
    "additionalProperties": False,
    "properties": {
        **COMMON,
        "actions": {"type": "array", "items": ACTION},
        "facts": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "instances": _known(host=_TEXT),
                "hosts": _known(name=_TEXT),
                "services": _known(host=_TEXT),
                "flavors": _known(),
            },
        },
        "audit_uuid": {"type": ["string", "null"]},
        "strategy_name": {"type": ["string", "null"]},
        "efficacy_indicators": {"type": "array"},
        "global_efficacy": {"type": "array"},
    },
}
