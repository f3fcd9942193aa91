# SPDX-License-Identifier: Apache-2.0
"""JSON Schema of ``kind: deployment``: tasks and nodes, or a three-level deployment message."""

from __future__ import annotations

from typing import Any

from planner.plan import place_rules
from planner.planners import node_fields
from planner.planners.solution_schema import COMMON
from planner.schemas import ranges

#: Types of tasks that a site may add: the product brings no action type of these names.
FOREIGN = ("erase_node", "move_to_bootstrap")
#: Types of tasks that run on nodes. The action type of the same name runs such a task.
RUNNABLE = (
    *("puppet", "shell", "sync", "upload_file", "copy_files", "reboot", "master_shell"),
    *FOREIGN,
)
#: Types of tasks that an action type of another name runs.
ACTION_TYPES = {"master_shell": "shell"}
ANCHORS = ("stage", "anchor")
TYPES = (*RUNNABLE, "group", "skipped", *ANCHORS)
#: Fields of Fuel's task sets that are accepted and ignored.
IGNORED = ("fail_on_error", "reexecute_on", "refresh_on", "test_post", "test_pre")
ENGINES = ("auto", "task", "role")
NAMES = ("regexp", "exact")

_NAME = ranges.NAME
_LIST = ranges.list_of(_NAME)
_NAMES = {**_NAME, "type": ["string", "array", "null"], "items": _NAME}
_WHERE = {
    **ranges.NAME,
    "type": ["string", "array", "null"],
    "items": {"type": ["string", "null"], "maxLength": ranges.LONGEST_NAME},
}
_UID = {
    "type": ["string", "integer"],
    "pattern": r"^[^/\s]+$",
    "maxLength": ranges.LONGEST_RESOURCE,
    "title": "a uid: no blanks, no '/'",
}
_RELATION: dict[str, Any] = ranges.mapping(
    name=_NAME,
    role=_WHERE,
    tags=_WHERE,
    policy={"enum": ["all", "any", None]},
    yaql_exp=ranges.TEXT,
)
_CROSS: dict[str, Any] = {
    **ranges.NAME,
    **_RELATION,
    "type": ["string", "array", "object", "null"],
    "required": [],
    "items": {**ranges.NAME, **_RELATION, "type": ["string", "object"]},
}

TASK: dict[str, Any] = {
    "type": "object",
    "required": ["id", "type"],
    "properties": {
        "id": ranges.RESOURCE,
        "type": {"enum": list(TYPES)},
        "version": {**ranges.NAME, "type": ["string", "number", "null"]},
        "role": _WHERE,
        "roles": _WHERE,
        "tags": _WHERE,
        "groups": _WHERE,
        "requires": _NAMES,
        "required_for": _NAMES,
        "cross-depends": _CROSS,
        "cross-depended-by": _CROSS,
        "strategy": {"type": ["object", "null"]},
        "condition": {**ranges.TEXT, "type": ["string", "boolean", "object", "null"]},
        "fault_tolerance": {**ranges.NAME, "type": ["string", "integer", "null"]},
        "tasks": {**_NAMES, "description": "Of a group: more tasks for its nodes."},
        "parameters": {"type": ["object", "null"]},
        "timeout": ranges.POSITIVE_SECONDS_OR_NULL,
        "retries": {**ranges.COUNT, "type": ["integer", "null"]},
        **{name: {} for name in IGNORED},
    },
}
#: Other names of fields, which Fuel reads as well.
ALIASES = {"cross_depends": "cross-depends", "cross_depended_by": "cross-depended-by"}
TASK["properties"] |= {name: TASK["properties"][field] for name, field in ALIASES.items()}

NODE: dict[str, Any] = ranges.mapping(
    "uid",
    uid=_UID,
    roles=_NAMES,
    tags={**_NAMES, "description": "The roles of tasks are matched with these; default: roles."},
    address={**_NAME, "type": ["string", "null"], "description": "[user@]host[:port]"},
    name={"type": ["string", "null"], "maxLength": ranges.LONGEST_NAME},
)
_BLOCK: dict[str, Any] = ranges.mapping(
    "nodes",
    name={**_NAME, "pattern": r"^[^*,=\s]+$", "title": "a name: no blanks, '*', ',' or '='"},
    tasks={**_NAMES, "type": ["string", "array"]},
    role={**_NAMES, "type": ["string", "array"]},
    nodes=node_fields.SERIAL,
    keep=node_fields.KEEP,
    stop_after=node_fields.STOP_AFTER,
    canary=node_fields.CANARY,
)

DOCUMENT: dict[str, Any] = {
    "anyOf": [{"required": ["tasks"]}, {"required": ["tasks_files"]}],
    **ranges.mapping(
        *("kind", "nodes"),
        **COMMON,
        tasks=ranges.list_of(TASK),
        tasks_files={**_LIST, "description": "Files with lists of tasks, relative to this one."},
        nodes={
            **ranges.mapping(**node_fields.FROM),
            "type": ["array", "object"],
            "items": NODE,
            "minProperties": 1,
        },
        deployment_engine={"enum": list(ENGINES)},
        names={"enum": list(NAMES), "description": "How a name without slashes is read."},
        serial={
            **node_fields.SERIAL,
            "type": ["integer", "string", "array", "object"],
            "items": {
                **node_fields.NUMBER,
                **_BLOCK,
                "type": ["integer", "string", "object"],
            },
            "minProperties": 1,
            "propertyNames": _NAME,
            "additionalProperties": node_fields.SERIAL,
            "description": "How many nodes at once: of all, by role, or of blocks of tasks.",
        },
        max_nodes={**ranges.COUNT_OF_ONE_OR_MORE, "type": ["integer", "null"]},
        only={
            **ranges.mapping(
                nodes={**_NAME, "type": ["string", "integer", "array"], "items": _UID},
                tasks={**_NAME, "type": ["string", "array"], "items": _NAME},
                fetch_deps={"type": "boolean"},
            ),
            "type": ["object", "null"],
        },
        fetch_deps={"type": "boolean"},
        strict={"type": "boolean", "description": "A name that matches nothing is a mistake."},
        changed_since={
            **ranges.ARGUMENT,
            "type": ["object", "string"],
            "description": "A plan, or its file.",
        },
        durations=ranges.by_name(ranges.SECONDS),
        settings={
            "type": ["object", "null"],
            "description": "The values that conditions and expressions of tasks read.",
        },
        placeholders={
            **ranges.by_name({**ranges.ARGUMENT, "type": ["string", "number"]}),
            "type": ["object", "null"],
            "description": "The values of {CLUSTER_ID}, {MASTER_IP} ... in parameters.",
        },
    ),
}

_LINKS = ranges.list_of(
    ranges.mapping(
        *("node", "task"),
        node=_UID,
        task=_NAME,
        join={**_NAME, "description": "The join that stands for it."},
    )
)
_PLACED: dict[str, Any] = {
    "position": {**ranges.COUNT, "description": "Place in the plan."},
    "requires": {**_LINKS, "description": "Must have ended well."},
    "requires_any": ranges.list_of({**_LINKS, "minItems": 1}),
    "after": {**_LINKS, "description": "Must have ended."},
    "requires_joins": {**_LIST, "description": "Joins that stand for some of requires."},
    "after_joins": {**_LIST, "description": "Joins that stand for some of after."},
}
_OF_A_TASK: dict[str, Any] = ranges.mapping(
    *("task", "type"),
    task=ranges.RESOURCE,
    type=_NAME,
    parameters={"type": "object"},
    description=ranges.TEXT_OR_NULL,
    reason=ranges.TEXT_OR_NULL,
    tokens=_LIST,
    places=place_rules.PLACES,
    estimate_s=ranges.SECONDS_OR_NULL,
    timeout_s=ranges.SECONDS_OR_NULL,
    retries=ranges.COUNT,
    **_PLACED,
)
MESSAGE: dict[str, Any] = ranges.mapping(
    *("kind", "nodes", "deployment_engine"),
    **COMMON,
    deployment_engine={"enum": ["task", "role"]},
    places=place_rules.PLACE_RULES,
    tolerances=ranges.list_of({"type": "object"}),
    on_failure={"enum": [None, "skip_descendants", "pause", "continue"]},
    warnings=ranges.list_of(ranges.TEXT),
    joins=ranges.list_of(ranges.mapping("join", join=_NAME, **_PLACED)),
    nodes=ranges.list_of(
        ranges.mapping(*("node", "tasks"), node=_UID, tasks=ranges.list_of(_OF_A_TASK))
    ),
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "deployment",
    "description": "Tasks, and the nodes they land on by their roles; or a deployment message.",
    "type": "object",
    "if": {
        "anyOf": [
            {
                "required": ["nodes"],
                "properties": {
                    "nodes": {
                        "type": "array",
                        "contains": {"type": "object", "required": ["node"]},
                    }
                },
            },
            {
                "title": "the message of a plan without actions",
                "required": ["nodes", "deployment_engine"],
                "properties": {"nodes": {"type": "array", "maxItems": 0}},
                "not": {"anyOf": DOCUMENT["anyOf"]},
            },
        ]
    },
    "then": MESSAGE,
    "else": DOCUMENT,
}
