# SPDX-License-Identifier: Apache-2.0
"""Parts of JSON Schema that several action types share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.schemas import ranges

Schema = Mapping[str, Any]

UUID: Schema = {
    "type": "string",
    "title": "a UUID",
    "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    "maxLength": 36,
}
TEXT: Schema = {**ranges.ARGUMENT, "minLength": 1}
RESOURCE: Schema = ranges.RESOURCE
TEXT_OR_NULL: Schema = {**TEXT, "type": ["string", "null"]}

INSTANCE_ID: Schema = {**UUID, "description": "UUID of the instance"}
RESOURCE_NAME: Schema = {**RESOURCE, "description": "name of the resource in messages"}
HOST_NAME: Schema = {**RESOURCE, "description": "host, if resource_id is not its name"}
#: For action types that work on no resource, but may name one.
ANY_RESOURCE: Mapping[str, Schema] = {"resource_id": TEXT, "resource_name": RESOURCE_NAME}


def parameters(
    required: Mapping[str, Schema],
    *,
    examples: Sequence[Mapping[str, Any]],
    optional: Mapping[str, Schema] | None = None,
    **rules: Any,
) -> dict[str, Any]:
    """Return the schema of ``input_parameters``: these fields and no others.

    ``examples`` are shown to users and used by the contract suite. ``rules`` are further keywords.
    """
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": {**required, **(optional or {})},
        **rules,
        "examples": list(examples),
    }
