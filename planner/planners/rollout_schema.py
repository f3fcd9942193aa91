# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of ``kind: rollout``."""

from __future__ import annotations

from typing import Any

from planner import ranges
from planner.planners.solution_schema import COMMON
from planner.planners.solution_schema import SCHEMA as SOLUTION

_NAME = {
    **ranges.RESOURCE,
    "type": ["string", "integer"],
    "pattern": r"^[^/\s]+$",
    "title": "a name: no blanks, no '/'",
}
_PERCENT = "^([1-9][0-9]?|100)%$"
_NUMBER: dict[str, Any] = {
    **ranges.COUNT_OF_ONE_OR_MORE,
    "type": ["integer", "string"],
    "pattern": _PERCENT,
    "maxLength": 4,
    "title": "a number of nodes from 1, or a percentage from 1% to 100%",
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
            "required": ["label"],
            "additionalProperties": False,
            "properties": {
                "label": {
                    "type": "object",
                    **ranges.BY_NAME,
                    "minProperties": 1,
                    "additionalProperties": ranges.NAME,
                    "description": "Hosts of the facts that have these labels.",
                }
            },
        },
        "nodes_files": {
            "type": "array",
            "items": ranges.NAME,
            "description": "Files with lists of nodes, relative to this one.",
        },
        "serial": {
            **_NUMBER,
            "type": ["integer", "string", "array"],
            "minItems": 1,
            "items": _NUMBER,
            "description": "How many nodes at once; a list widens. 1 where left out.",
        },
        "canary": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "nodes": {**_NUMBER, "description": "How many nodes go first; 1 where left out."},
                "approve": {
                    "type": "boolean",
                    "description": "Whether the plan pauses after them; true where left out.",
                },
            },
            "description": "The first nodes, after which the plan pauses for a look.",
        },
        "stop_after": {**_NUMBER, "description": "When so many have failed, none begins."},
        "keep": {
            "type": "boolean",
            "description": "Whether a node that failed keeps its place; true where left out.",
        },
        "order": {"enum": ["as given", "spread"], "description": "spread: racks in turn."},
        "steps": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "minProperties": 1, "properties": STEP_FIELDS},
        },
        "facts": SOLUTION["properties"]["facts"],
    },
}
