# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas of requests and responses, besides those of documents.

Those in :data:`COMPONENTS` have a name in the description of the API, and in the clients that are
made of it. Elsewhere they stand as they are, without references.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from applier.contracts import Approval, HistoryEntry, Request
from applier.notifications.schema import SCHEMA as EVENTS
from applier.operations.creation import POLICIES
from applier.operations.measured_durations import Known
from applier.store import Attempt, PlanSummary
from applier.store import Service as ServiceEntry
from applier.store.entries import DeadEvent, Subscription, Trouble
from applier.store.worker_jobs import Worker
from planner.making import saved
from planner.plan.states import ActionState, Outcome, PlanState, StateReason
from planner.schemas import ranges

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer", "minimum": 1, "maximum": ranges.MOST}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
MOMENT: Schema = {"type": ["string", "null"], "format": "date-time"}
WHY: Schema = {"type": "string", "minLength": 1, "maxLength": 2000}
LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": 1000}
COUNT: Schema = {"type": "integer", "minimum": 0}

#: The schemas with a name of their own.
COMPONENTS: dict[str, Schema] = {}


def component(name: str, schema: Schema) -> Schema:
    """Return a schema, which has this name in the description."""
    COMPONENTS[name] = schema
    return schema


def mapping(required: Mapping[str, Any], **optional: Any) -> Schema:
    """Return the schema of a mapping with these fields and no others, by types: see of_type()."""
    return {
        "type": "object",
        "properties": {name: of_type(kind) for name, kind in {**required, **optional}.items()},
        **({"required": list(required)} if required else {}),
        "additionalProperties": False,
    }


def record(name: str, /, **fields: Any) -> Schema:
    """Return the schema of a mapping with these fields, of which all are there, as a component."""
    return component(name, mapping(fields))


def list_of(item: Schema, name: str = "", /, **more: Any) -> Schema:
    """Return the schema of a response with ``items``, which may have the URL of its next page.

    Its name is that of the items, unless there is another.
    """
    of = name or next(known for known, schema in COMPONENTS.items() if schema is item)
    return component(f"{of}_list", mapping({"items": [item], **more}, next=str))


def or_none(schema: Schema) -> Schema:
    """Return the schema of a value that may be null."""
    if schema.keys() & {"enum", "properties"}:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def only_uuid_required(schema: Schema) -> Schema:
    """Return the schema of a mapping of which a request chooses ``fields``."""
    return {**schema, "required": ["uuid"]}


def fields_of(schema: Schema) -> Schema:
    """Return the schema of the query parameter ``fields`` of a list with such items."""
    return {
        "type": "array",
        "items": {"type": "string", "enum": sorted(schema["properties"])},
        "description": "The fields that each item has, besides uuid; all without this parameter.",
    }


def chosen(schema: Schema, fields: Iterable[str] | None) -> Schema:
    """Return the part of the schema of a mapping that the query parameter ``fields`` asks for."""
    if fields is None:
        return schema
    return {"properties": {name: schema["properties"][name] for name in ("uuid", *fields)}}


def as_json(value: Any, schema: Schema | None = None) -> Any:
    """Return times, mappings and named tuples as JSON types, and any other value as it is.

    Of a named tuple, ``schema`` names the fields.
    """
    if isinstance(value, datetime):
        return value.isoformat()
    if schema is not None:
        value = {name: getattr(value, name) for name in schema["properties"]}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {name: as_json(part) for name, part in value.items()}
    return value


PLAN_STATE = component("plan_state", {"type": "string", "enum": list(map(str, PlanState))})
ACTION_STATE = component("action_state", {"type": "string", "enum": list(map(str, ActionState))})
OUTCOME = component("outcome", {"type": "string", "enum": list(map(str, Outcome))})
STATE_REASON = component("state_reason", {"type": "string", "enum": list(map(str, StateReason))})
POLICY = component("failure_policy", {"type": "string", "enum": list(POLICIES)})
#: The schema for each type of a field.
_OF_TYPES: dict[Any, Schema] = {
    str: TEXT,
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: FLAG,
    datetime: TIME,
    PlanState: PLAN_STATE,
    ActionState: ACTION_STATE,
    Outcome: OUTCOME,
}


def of_type(kind: Any) -> Schema:
    """Return the schema of the JSON of a type: of a value, a sequence, a mapping, or None.

    A schema stands for itself, a list of one for a sequence.

    >>> of_type(Sequence[int | None]), of_type([LIMIT]) == {"type": "array", "items": LIMIT}
    ({'type': 'array', 'items': {'type': ['integer', 'null']}}, True)
    """
    if isinstance(kind, Mapping):
        return kind
    if isinstance(kind, list):
        return {"type": "array", "items": of_type(*kind)}
    if kind in _OF_TYPES:
        return _OF_TYPES[kind]
    inner = get_args(kind)
    if NoneType in inner:
        (one,) = (other for other in inner if other is not NoneType)
        return or_none(of_type(one))
    if get_origin(kind) is Sequence:
        return {"type": "array", "items": of_type(inner[0])}
    return {"type": "object", "additionalProperties": of_type(inner[1])}


def of_tuple(name: str, kind: Any, without: Iterable[str] = (), **more: Any) -> Schema:
    """Return the schema of a named tuple as JSON, as a component; ``more`` has other fields."""
    hints = get_type_hints(kind)
    fields = {field: hints[field] for field in kind._fields if field not in {*without, *more}}
    made = record(name, **fields, **more)
    _OF_TYPES.setdefault(kind, made)
    return made


#: A document, whose kind has a schema of its own at /v2/schemas.
DOCUMENT = component("document", {"type": "object"})
REASON = component("reason", mapping({}, why=WHY))
HALT = component("halt", mapping({}, why=WHY, now=bool))
REASON_NEEDED = record("needed_reason", why=WHY)
START = component("start", mapping({}, accept_drift=bool, at=TIME, in_window=bool, why=WHY))
_SETTLED: Schema = {"type": "string", "enum": ["SUCCEEDED", "FAILED"]}
SETTLE = record("settlement", state=_SETTLED, why=WHY)
_BY_TOKEN: Schema = {"type": "object", "minProperties": 1, "additionalProperties": WHOLE}
LIMITS = component("limits", mapping({"limits": _BY_TOKEN}, why=WHY))

#: The response to a change: the state that the plan has now, and the messages.
DONE = record("change", uuid=str, state=PLAN_STATE, messages=[str])
TOLD = record("messages", messages=[str])
SUMMARY = of_tuple("plan_summary", PlanSummary, ["digest"])
ATTEMPT = of_tuple("attempt", Attempt, ["worker", "left_in"])
REQUEST = of_tuple("request", Request)
ENTRY = of_tuple("history_entry", HistoryEntry, ["once", "after"])
SERVICE = of_tuple("service", ServiceEntry)
WORKER = of_tuple("worker", Worker)
DURATION = of_tuple("duration", Known)
APPROVAL = of_tuple("approval", Approval, ["content"], counts=bool)
TROUBLE = of_tuple("trouble", Trouble)
SUBSCRIPTION = of_tuple("subscription", Subscription, ["holder", "beats"], waiting=COUNT)
EVENT = component(
    "event",
    {
        "oneOf": [
            component(one["properties"]["type"]["const"].replace(".", "_") + "_event", one)
            for one in EVENTS["oneOf"]
        ]
    },
)
DEAD_EVENT = of_tuple("dead_event", DeadEvent, event=EVENT)


def _shown(schema: Schema, optional: Iterable[str], **properties: Any) -> Schema:
    """Return the schema of a plan or an action as it is shown: almost all fields are there."""
    known = {**schema["properties"], **properties}
    known.pop("limits_now", None)
    return mapping(
        {name: one for name, one in known.items() if name not in optional},
        **{name: known[name] for name in optional},
    )


ACTION = component(
    "action",
    _shown(
        saved.ACTION,
        ("blocked_by", "places", "state_reason"),
        state=ACTION_STATE,
        outcome=or_none(OUTCOME),
        state_reason=STATE_REASON,
        started_at=MOMENT,
        ended_at=MOMENT,
    ),
)
LISTED_ACTION = component("listed_action", only_uuid_required(ACTION))
LISTED_PLAN = component("listed_plan", only_uuid_required(SUMMARY))
PLAN = component(
    "plan",
    _shown(
        saved.SCHEMA,
        ("places", "facts_at", "start_at", "guards"),
        state=PLAN_STATE,
        on_failure=or_none(POLICY),
        **dict.fromkeys(("created_at", "updated_at", "facts_at", "start_at"), MOMENT),
        actions=[ACTION],
    ),
)
SHOWN_ACTION = component(
    "shown_action",
    _shown(
        ACTION,
        ("blocked_by", "places", "state_reason"),
        output=str | None,
        attempts_made=[ATTEMPT],
    ),
)
#: Settings of planning in a query, as ``--set`` has them.
SETTINGS: Schema = {
    "type": "array",
    "items": {"type": "string", "maxLength": 1000},
    "maxItems": 100,
    "description": "KEY=VALUE, such as migrate.parallelization=2, ordering=slots or "
    f"on_failure={'|'.join(POLICIES)}",
}
