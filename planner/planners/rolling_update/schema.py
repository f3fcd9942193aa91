# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of ``kind: rolling_update``."""

from __future__ import annotations

from typing import Any

from planner.planners.solution_schema import ACTION, COMMON, FACTS
from planner.schemas import ranges

_TEMPLATE = {"type": "object", "description": "A template, CloudFormation's form or Heat's own."}
_FILE = {
    **ranges.ARGUMENT,
    "minLength": 1,
    "description": "In its place: a file with it (JSON or YAML), relative to this document.",
}
_VALUES = {"type": "object", "description": "Values of the templates' parameters by name."}
_FILES = ranges.by_name(ranges.TEXT)
_TIME = ranges.NAME_OR_NULL
_MEMBER: dict[str, Any] = ranges.mapping(
    "id",
    id={**ranges.RESOURCE, "description": "UUID or unique name."},
    name=ranges.NAME_OR_NULL,
    created_at={**_TIME, "description": "The oldest go first."},
    failed={"type": "boolean", "description": "Not in service; goes before all others."},
    current={"type": "boolean", "description": "Has the new definition; stays."},
)
_INDEX = {
    **ranges.NAME,
    "type": ["integer", "string"],
    "minimum": 0,
    "maximum": ranges.MOST,
    "description": "In a resource group, or the name of its server in a deployment group.",
}
_INDEXED = {**_MEMBER, "properties": {**_MEMBER["properties"], "index": _INDEX}}
_COUNT = ranges.COUNT_OF_ONE_OR_MORE
_DEFINITION: dict[str, Any] = {"type": "object", "propertyNames": ranges.NAME}
_FROM_FACTS: dict[str, Any] = {
    **ranges.mapping(
        server_group={**ranges.NAME, "description": "Members of the server group."},
        label=ranges.by_name(
            ranges.NAME, minProperties=1, description="Instances on hosts that have these labels."
        ),
    ),
    "minProperties": 1,
}
_GROUP: dict[str, Any] = ranges.mapping(
    "members",
    name=ranges.NAME,
    members={
        **ranges.mapping("from_facts", from_facts=_FROM_FACTS),
        "type": ["array", "object"],
        "minItems": 1,
        "items": {**ranges.RESOURCE, **_MEMBER, "type": ["string", "object"]},
    },
    was={**_DEFINITION, "description": "What members have now, for a rollback."},
)
_STEP: dict[str, Any] = {
    "anyOf": [
        _COUNT,
        {
            "type": "string",
            "title": "a percentage, 1% to 100%",
            "pattern": "^([1-9][0-9]?|100)%$",
        },
    ]
}
_GROUP_OR_TEMPLATES = [
    {"required": ["group", "change"]},
    {
        "allOf": [
            {"anyOf": [{"required": ["old"]}, {"required": ["old_file"]}]},
            {"anyOf": [{"required": ["new"]}, {"required": ["new_file"]}]},
        ]
    },
]

SCHEMA: dict[str, Any] = ranges.document(
    "rolling_update",
    "Two versions of a template: groups whose members change are replaced.",
    **COMMON,
    group={
        **_GROUP,
        "description": "The instances that change; with change, in place of two templates.",
    },
    change={
        **_DEFINITION,
        "minProperties": 1,
        "description": "What new members have: image, flavor, networks, key_name ....",
    },
    min_in_service={**ranges.COUNT, "description": "Of the group, in_place."},
    max_batch={**_COUNT, "description": "How many at once; 1 where left out."},
    pause_s={**ranges.SECONDS, "description": "Between batches."},
    facts=FACTS,
    old=_TEMPLATE,
    old_file=_FILE,
    new=_TEMPLATE,
    new_file=_FILE,
    parameters=_VALUES,
    old_parameters={
        **_VALUES,
        "description": "Those of the old template, where they were others.",
    },
    files={**_FILES, "description": "Contents of the files of get_file, by name."},
    old_files={**_FILES, "description": "Those for the old template, where others."},
    mode={
        "enum": ["create_first", "in_place"],
        "description": "In a batch, new members before old ones go (the default), or after.",
    },
    surge={
        "enum": ["bounded", "allowed"],
        "description": "May a roll exceed the maximum of a group (MaxSize)? Not by default.",
    },
    groups=ranges.by_name(
        ranges.mapping("members", members=ranges.list_of(_INDEXED)),
        description="The members that groups have, by name of the group.",
    ),
    pause_first={"type": "boolean", "description": "Pause before each batch, all of them."},
    steps=ranges.list_of(
        _STEP, description="Batches end where so many members are new: a number, or N%."
    ),
    gates=ranges.list_of(
        ACTION, description="Actions after each batch; the next one waits for them to end well."
    ),
    deadline={
        **ranges.NAME,
        "type": ["string", "number"],
        "exclusiveMinimum": 0,
        "maximum": ranges.LONGEST_S,
        "description": "By when it has to end: a time, or seconds from its start.",
    },
    quota={
        "description": "How many instances the groups may have at once.",
        "anyOf": [ranges.COUNT, ranges.mapping("instances", instances=ranges.COUNT)],
    },
    max_unavailable_total={
        **_COUNT,
        "description": "How many members of all groups may be out of service at once, beside "
        "those that are failed.",
    },
    durations=ranges.by_name(
        ranges.SECONDS,
        description="Seconds by action type, for the end that is predicted.",
    ),
) | {"anyOf": _GROUP_OR_TEMPLATES}
