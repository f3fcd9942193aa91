# SPDX-License-Identifier: Apache-2.0
"""The document of a simulated cloud: its shape as JSON Schema, and how it is read and checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from os import PathLike, fspath
from typing import Any

from applier.errors import ConfigurationError
from planner import documents
from planner.errors import InvalidInput, Mistake, Path, accepted
from planner.schemas import ranges
from planner.schemas.checking import compiled

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
    *[name for name in DURATIONS if not name.endswith("_migrate")],
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

_check_shape = compiled(SCHEMA)
_ABSENT = {"target": "*", "times": None, "kind": "fail", "message": None, "seconds": 0}


def read(source: Mapping[str, Any] | str | PathLike[str] | None = None) -> World:
    """Return a checked and complete cloud from a mapping, a YAML or JSON file, or the packaged one.

    Raises ConfigurationError with every mistake, a line each, with file and line.
    """
    try:
        document = _document(source)
        if wrong := mistakes(document.value, {**_REFERENCES, **_FAULT_REFERENCES}):
            raise InvalidInput(wrong).located(document.locate)
    except InvalidInput as refusal:
        raise ConfigurationError(str(refusal), refusal.mistakes) from refusal
    return complete(document.value)


def _document(source: Mapping[str, Any] | str | PathLike[str] | None) -> documents.Document:
    if source is None:
        name = "small-cloud.yaml"
        text = resources.files("applier.clouds").joinpath(name).read_text(encoding="utf-8")
        return documents.parse(text, name)
    if isinstance(source, Mapping):
        # A copy, so that changes in the cloud do not reach the caller's mapping.
        return documents.Document(json.loads(json.dumps(source)))
    return documents.read(fspath(source))


def complete(world: World) -> World:
    """Return a correct cloud with every optional field filled in, and no ongoing operation."""

    def filled(table: str, **absent: Any) -> dict[str, Any]:
        return {key: absent | entry for key, entry in world.get(table, {}).items()}

    services = {host: {} for host in world["hosts"]} | world.get("services", {})
    return {
        "hosts": filled("hosts", power="on", labels={}),
        "flavors": world["flavors"],
        "instances": filled("instances", status="ACTIVE"),
        "services": {h: {"status": "enabled", "reason": None} | s for h, s in services.items()},
        "server_groups": world.get("server_groups", {}),
        "pools": world.get("pools", {}),
        "volume_types": world.get("volume_types", []),
        "volumes": filled("volumes", type=None, instance=None),
        "durations": DURATIONS | world.get("durations", {}),
        "faults": [_ABSENT | fault for fault in world.get("faults", [])],
        "ongoing": [],
    }


def complete_fault(world: World, fault: Mapping[str, Any]) -> Fault:
    """Return a fault with every optional field filled in.

    Its target must be in ``world``: a uuid, a host, or a name that only one entry has. Raises
    ConfigurationError.
    """
    wrong = mistakes(world | {"faults": [dict(fault)]}, _FAULT_REFERENCES)
    if wrong:
        # It was checked in a list of one fault: remove that list from the path.
        inside = [mistake._replace(path=mistake.path[2:], place="fault") for mistake in wrong]
        raise ConfigurationError("\n".join(map(str, inside)))
    return _ABSENT | dict(fault)


_Found = Iterator[tuple[str, Path]]
#: Maps each check to: the tables whose entries it reads, the tables of which it needs only the
#: keys.
_Checks = Mapping[Callable[[World], _Found], tuple[set[str], set[str]]]


def mistakes(world: Any, checks: _Checks | None = None) -> list[Mistake]:
    """List every mistake in a cloud: first of its shape, then of references and capacity.

    ``checks`` are those of references and capacity. A check is made only if the tables that it
    needs have the right shape. The default checks leave out the targets of faults, because the
    target of an old fault may have been deleted.
    """
    found = _check_shape(world)
    if isinstance(world, dict):
        missing = set(SCHEMA["required"]) - world.keys()
        no_names = missing | {m.path[0] for m in found if len(m.path) == 1}
        damaged = missing | {m.path[0] for m in found if m.path}
        for check, (read, named) in (_REFERENCES if checks is None else checks).items():
            if not damaged & read and not no_names & named:
                found += [Mistake(text, path) for text, path in check(world)]
    return found


def _instance_references(world: World) -> _Found:
    for uuid, instance in world["instances"].items():
        path = ("instances", uuid)
        host, shelved = instance["host"], instance.get("status") == "SHELVED"
        if shelved and host is not None:
            yield "a SHELVED instance is on no host (null)", (*path, "host")
        if not shelved and host not in world["hosts"]:
            yield f"no host {host!r}; {accepted(host, world['hosts'])}", (*path, "host")
        if instance["flavor"] not in world["flavors"]:
            text = f"no flavor {instance['flavor']!r}; "
            yield text + accepted(instance["flavor"], world["flavors"]), (*path, "flavor")


def _overfull_hosts(world: World) -> _Found:
    for name, host in world["hosts"].items():
        on_it = [i["flavor"] for i in world["instances"].values() if i["host"] == name]
        for room in ROOM:
            used = sum(world["flavors"].get(flavor, {}).get(room, 0) for flavor in on_it)
            if used > host[room]:
                text = f"its instances need {used} {room}, it has {host[room]}"
                yield text, ("hosts", name, room)


def _service_references(world: World) -> _Found:
    for host in world.get("services", {}):
        if host not in world["hosts"]:
            yield f"no host {host!r}; {accepted(host, world['hosts'])}", ("services", host)


def _volume_references(world: World) -> _Found:
    tables = {
        "pool": world.get("pools", {}),
        "type": world.get("volume_types", []),
        "instance": world["instances"],
    }
    for uuid, volume in world.get("volumes", {}).items():
        for what, known in tables.items():
            name = volume.get(what)
            if name is not None and name not in known:
                path = ("volumes", uuid, what)
                yield f"no {what} {name!r}; {accepted(name, known)}", path
    for name, pool in world.get("pools", {}).items():
        used = sum(v["size_gb"] for v in world.get("volumes", {}).values() if v["pool"] == name)
        if used > pool["size_gb"]:
            text = f"its volumes need {used} GB, it has {pool['size_gb']}"
            yield text, ("pools", name, "size_gb")


def _fault_references(world: World) -> _Found:
    volumes = world.get("volumes", {})
    known = {"*", *world["hosts"], *world["instances"], *volumes}
    names = Counter(entry["name"] for entry in [*world["instances"].values(), *volumes.values()])
    for i, fault in enumerate(world.get("faults", [])):
        target, path = fault.get("target", "*"), ("faults", i, "target")
        if target in known or names[target] == 1:
            continue
        if names[target]:
            yield f"{names[target]} things are called {target!r}: name the uuid", path
        else:
            text = f"no instance, host or volume {target!r}; "
            yield text + accepted(target, {*names, *world["hosts"]}), path


_REFERENCES: _Checks = {
    _instance_references: ({"instances"}, {"hosts", "flavors"}),
    _overfull_hosts: ({"instances", "hosts", "flavors"}, set()),
    _service_references: ({"services"}, {"hosts"}),
    _volume_references: ({"volumes", "pools", "volume_types"}, {"instances"}),
}
_FAULT_REFERENCES: _Checks = {
    _fault_references: ({"faults", "instances", "volumes"}, {"hosts"}),
}
