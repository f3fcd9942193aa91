# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of ``kind: solution``."""

from __future__ import annotations

from typing import Any

from planner import guards
from planner.schemas import ranges

#: A name that may be empty: clouds have such ones.
_NAME = {"type": ["string", "null"], "maxLength": ranges.LONGEST_NAME}
_WORD = {"type": "string", "maxLength": ranges.LONGEST_NAME}
#: A host may have several values of a label, as it is in several aggregates.
_LABELS = ranges.by_name({**_WORD, "type": ["string", "array"], "items": _WORD})


def _known(**fields: Any) -> dict[str, Any]:
    """Return the schema of a table of facts, which maps each id to a mapping of fields.

    ``fields`` has the schema of each field that is read. Other fields are allowed.
    """
    return ranges.by_name({"type": "object", "properties": fields})


#: Fields that are allowed in documents of every kind.
COMMON: dict[str, Any] = {
    "kind": {**_WORD, "description": "Chooses the reader; solution where left out."},
    "planner": {**_WORD, "description": "Name of the planner that is to plan this."},
    "name": ranges.NAME_OR_NULL,
    "limits": {
        "type": "object",
        "description": "Token, or KIND:* for each of a kind by itself, to how many at once.",
        "propertyNames": {"pattern": "^[^:\\s]+(:.+)?$", "maxLength": ranges.LONGEST_NAME},
        "additionalProperties": ranges.COUNT_OF_ONE_OR_MORE,
    },
    "guards": guards.SCHEMA,
    "options": {"type": "object", "description": "Options of the planner, over the file's."},
}

ACTION: dict[str, Any] = ranges.mapping(
    "action_type",
    name={
        **ranges.COMPOSED_NAME,
        "type": ["string", "null"],
        "description": "Unique; a type and number where left out.",
    },
    action_type=ranges.NAME,
    resource_id=ranges.NAME_OR_NULL,
    input_parameters={"type": ["object", "null"]},
    touches=ranges.list_of(
        ranges.NAME, description="[EFFECT ]KIND:ID; default: the touches of the action type."
    ),
    estimate_s=ranges.SECONDS_OR_NULL,
    timeout_s=ranges.POSITIVE_SECONDS_OR_NULL,
    retries=ranges.COUNT,
)

_NAMES = ranges.list_of(ranges.COMPOSED_NAME, uniqueItems=True)
_LINKED = {
    **ACTION["properties"],
    "needs": {**_NAMES, "description": "Names of actions that must end well before it."},
    "after": {**_NAMES, "description": "Names of actions that must have ended before it."},
}

FACTS: dict[str, Any] = ranges.mapping(
    cloud={**ranges.NAME_OR_NULL, "description": "The cloud that they came from."},
    at={**ranges.NAME_OR_NULL, "description": "When they were read."},
    totals=ranges.by_name(
        ranges.COUNT,
        description="How many hosts and instances there are, without the tables.",
    ),
    belongs_to=ranges.by_name(
        ranges.list_of(ranges.NAME),
        description="Which labels (rack/r1) and groups (group/db) a host (node:NAME)"
        " or an instance (instance:ID) belongs to, without the tables.",
    ),
    instances=_known(host=_NAME),
    hosts=_known(name=_NAME, labels=_LABELS),
    services=_known(host=_NAME),
    volumes=_known(instance=ranges.NAME_OR_NULL),
    flavors=_known(),
    server_groups=_known(
        name=_NAME,
        policy=_NAME,
        members=ranges.list_of(ranges.NAME),
        max_server_per_host={**ranges.COUNT_OF_ONE_OR_MORE, "type": ["integer", "null"]},
    ),
)

SCHEMA: dict[str, Any] = ranges.document(
    "solution",
    "Actions that should be done, in the order in which they were found.",
    "actions",
    **COMMON,
    actions=ranges.list_of({**ACTION, "properties": _LINKED}),
    facts=FACTS,
    audit_uuid=ranges.NAME_OR_NULL,
    strategy_name=ranges.NAME_OR_NULL,
    efficacy_indicators={"type": "array"},
    global_efficacy={"type": "array"},
)
