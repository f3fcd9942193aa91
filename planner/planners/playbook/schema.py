# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of ``kind: playbook``."""

from __future__ import annotations

from typing import Any

from planner.planners.solution_schema import COMMON
from planner.schemas import ranges

_NAMES: dict[str, Any] = {
    **ranges.ARGUMENT,
    "type": ["string", "array"],
    "items": ranges.ARGUMENT,
}
_PLAY: dict[str, Any] = {
    "type": "object",
    "required": ["play"],
    "additionalProperties": False,
    "properties": {
        "play": {
            "type": "object",
            "required": ["hosts"],
            "description": "The play as it is written.",
            "properties": {
                "hosts": _NAMES,
                "name": {"type": ["string", "null"], "maxLength": ranges.LONGEST_NAME},
            },
        },
        "variables": {"type": "object", "description": "Those of the import that brings it."},
        "roles": {
            "type": "object",
            **ranges.BY_NAME,
            "description": "By name: the tasks of its roles, the words in them, what they make.",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    name: {"type": "array", "items": ranges.TEXT}
                    for name in ("tasks", "words", "makes")
                },
            },
        },
    },
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "playbook",
    "description": "A playbook of Ansible, run play by play on the hosts of an inventory.",
    "type": "object",
    "required": ["kind", "playbook", "inventory"],
    "additionalProperties": False,
    "properties": {
        **COMMON,
        "playbook": {**ranges.ARGUMENT, "description": "A file, relative to this one."},
        "inventory": {
            **_NAMES,
            "minItems": 1,
            "description": "One or more inventories, relative to this document.",
        },
        "limit": {**_NAMES, "description": "A pattern: only these hosts, as --limit."},
        "tags": {**_NAMES, "description": "Only tasks with one of these tags, as --tags."},
        "skip_tags": {**_NAMES, "description": "No tasks with one of these, as --skip-tags."},
        "variables": {
            "type": "object",
            **ranges.BY_NAME,
            "description": "As --extra-vars: over all others.",
        },
        "become": {"type": "boolean", "description": "Whether tasks run as another user."},
        "forks": {
            **ranges.COUNT_OF_ONE_OR_MORE,
            "description": "On how many hosts at once; as Ansible is configured where left out.",
        },
        "vault_password": {**ranges.ARGUMENT, "description": "A reference to a secret."},
        "plays": {
            "type": "array",
            "minItems": 1,
            "items": _PLAY,
            "description": "What the playbook holds; read from it.",
        },
        "groups": {
            "type": "object",
            **ranges.BY_NAME,
            "additionalProperties": {"type": "array", "items": ranges.RESOURCE},
            "description": "The hosts of each group in Ansible's order; read from the inventory.",
        },
    },
}
