# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of ``kind: rollout``."""

from __future__ import annotations

from typing import Any

from planner.planners import serial_fields
from planner.planners.solution_schema import COMMON
from planner.planners.solution_schema import SCHEMA as SOLUTION
from planner.schemas import ranges

_NAME = {
    **ranges.RESOURCE,
    "type": ["string", "integer"],
    "pattern": r"^[^/\s]+$",
    "title": "a name: no blanks, no '/'",
}
NODE: dict[str, Any] = {
    **_NAME,
    "type": ["string", "integer", "object"],
    "required": ["name"],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "address": {**ranges.ARGUMENT, "description": "[user@]host[:port]; else it is simulated."},
        "rack": ranges.NAME,
        "roles": {**ranges.NAME, "type": ["string", "array"], "items": ranges.NAME},
    },
}
#: Fields of a step besides its type, which maps to its main parameter or to its parameters.
STEP_FIELDS: dict[str, Any] = {
    "name": {**_NAME, "description": "Unique; the type where left out."},
    "estimate_s": ranges.SECONDS_OR_NULL,
    "timeout_s": ranges.POSITIVE_SECONDS_OR_NULL,
    "retries": ranges.COUNT,
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "rollout",
    "description": "Steps on each of several nodes, so many nodes at a time.",
    "type": "object",
    "required": ["kind", "name", "nodes", "steps"],
    "additionalProperties": False,
    "properties": {
        **COMMON,
        "name": {**_NAME, "type": "string"},
        "nodes": {
            "type": ["array", "object"],
            "items": NODE,
            "minItems": 1,
            "minProperties": 1,
            "additionalProperties": False,
            "properties": {
                "label": {
                    "type": "object",
                    **ranges.BY_NAME,
                    "minProperties": 1,
                    "additionalProperties": ranges.NAME,
                    "description": "Hosts of the facts that have these labels.",
                },
                "role": {**ranges.NAME, "description": "Only nodes with this role."},
                "from": {
                    **ranges.ARGUMENT,
                    "description": "A file with nodes, such as a deployment, relative to this one.",
                },
                "document": {
                    "type": ["object", "array"],
                    "description": "What such a file holds; instead of it.",
                },
            },
        },
        "serial": serial_fields.SERIAL,
        "canary": serial_fields.CANARY,
        "stop_after": {
            **serial_fields.STOP_AFTER,
            "type": ["integer", "string", "object"],
            "minProperties": 1,
            "additionalProperties": False,
            "properties": {
                "rack": {**serial_fields.NUMBER, "description": "The same for each rack."},
                "role": {**serial_fields.NUMBER, "description": "The same for each role."},
            },
        },
        "keep": serial_fields.KEEP,
        "order": {"enum": ["as given", "spread"], "description": "spread: racks in turn."},
        "steps": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "minProperties": 1, "properties": STEP_FIELDS},
        },
        "facts": SOLUTION["properties"]["facts"],
    },
}
