# SPDX-License-Identifier: Apache-2.0
"""The shape of a simulated cloud, as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner import ranges

#: A whole cloud: tables (``hosts``, ``instances``, ...) of entries, as JSON holds them.
World = dict[str, Any]
#: A failure or delay that is injected into operations.
Fault = dict[str, Any]

#: The kinds of capacity that a host has and a flavor needs.
ROOM = ("vcpus", "ram_mb", "disk_gb")
#: Default seconds of each operation.
DURATIONS = {
    "live_migrate": 2,
    "cold_migrate": 3,
    "resize": 3,
    "stop": 1,
    "start": 1,
    "shelve": 2,
    "create": 3,
    "delete": 1,
    "service": 1,
    "power": 3,
    "volume_migrate": 4,
}
#: The operations that a fault can affect.
OPERATIONS = (
    "migrate",
    "resize",
    "stop",
    "start",
    "shelve",
    "create",
    "delete",
    "service",
    "power",
    "volume_migrate",
)
#: The policies of groups of instances, as in Nova. Operations do not enforce them.
POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
#: Fields of an ongoing operation in the file.
ONGOING = ("id", "pid", "born", "operation", "what", "changes", "uses", "holds")

_TEXT = {**ranges.TEXT, "minLength": 1}
_TEXT_OR_NULL = ranges.TEXT_OR_NULL


def _entry(required: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": {**required, **optional},
    }


def _table(required: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    entry = _entry(required, **optional)
    return {"type": "object", **ranges.BY_NAME, "additionalProperties": entry}


_UUID = {
    "title": "a UUID",
    "maxLength": 36,
    "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
}
_UUIDS = {"propertyNames": _UUID}
FAULT = _entry(
    {"operation": {"enum": [*OPERATIONS, "*"]}},
    target=_TEXT,
    times={**ranges.COUNT_OF_ONE_OR_MORE, "type": ["integer", "null"]},
    kind={"enum": ["fail", "error", "hang", "slow"]},
    message=_TEXT_OR_NULL,
    seconds=ranges.SECONDS,
)
SCHEMA = _entry(
    {
        "hosts": _table(
            dict.fromkeys(ROOM, ranges.COUNT),
            power={"enum": ["on", "off", "suspended"]},
            labels={"type": "object"},
        ),
        "flavors": _table(dict.fromkeys(ROOM, ranges.COUNT)),
        "instances": _table(
            {"name": _TEXT, "host": _TEXT_OR_NULL, "flavor": _TEXT},
            status={"enum": ["ACTIVE", "SHUTOFF", "SHELVED"]},
        )
        | _UUIDS,
    },
    services=_table({"status": {"enum": ["enabled", "disabled"]}}, reason=_TEXT_OR_NULL),
    server_groups=_table(
        {"policy": {"enum": list(POLICIES)}, "members": {"type": "array", "items": _TEXT}},
        name=_TEXT,
        max_server_per_host=ranges.COUNT_OF_ONE_OR_MORE,
    ),
    pools=_table({"size_gb": ranges.COUNT}),
    volume_types={"type": "array", "items": _TEXT},
    volumes=_table(
        {"name": _TEXT, "size_gb": ranges.COUNT, "pool": _TEXT},
        type=_TEXT_OR_NULL,
        instance=_TEXT_OR_NULL,
    )
    | _UUIDS,
    durations=_entry({}, **dict.fromkeys(DURATIONS, ranges.SECONDS)),
    faults={"type": "array", "items": FAULT},
    ongoing={"type": "array", "items": {"type": "object", "required": list(ONGOING)}},
)
