# SPDX-License-Identifier: Apache-2.0
"""The operations of a simulated cloud: each is a function that returns a CloudOperation.

It checks its preconditions in the given cloud, and raises ActionFailed if one does not hold.
Nothing here waits, or reads a clock or a file. Only :func:`take_fault` and :func:`commit` change
the cloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from applier.clouds.simulated_capacity import (
    choose_host,
    free_in_pool,
    free_on_hosts,
    must_have_room,
    room_needed,
)
from applier.clouds.simulated_document import ROOM, World
from applier.errors import ActionFailed

#: Maps a requested status to: the operation, its name in messages, the statuses from which it is
#: possible.
_STATUSES = {
    "SHUTOFF": ("stop", "the stop", ("ACTIVE",)),
    "ACTIVE": ("start", "the start", ("SHUTOFF", "SHELVED")),
    "SHELVED": ("shelve", "the shelving", ("ACTIVE", "SHUTOFF")),
}
_POWERS = {"on": "switching on", "off": "switching off", "suspended": "suspending"}


@dataclass(frozen=True, kw_only=True, slots=True)
class CloudOperation:
    """An operation that may begin: the entries that it locks, the capacity it reserves, its result.

    ``what`` names it in messages. ``seconds`` is its simulated duration. A fault with one of
    ``names`` as its target applies to it. ``changes`` and ``uses`` list entries, such as
    ``host:node-1``: while it is ongoing, no other operation may change any of them, or use those in
    ``changes``. ``holds`` is the capacity that it reserves, by host or pool. ``result`` maps table
    and key to changed fields; None removes the entry.
    """

    operation: str
    what: str
    seconds: float
    names: tuple[str, ...]
    changes: tuple[str, ...]
    uses: tuple[str, ...] = ()
    holds: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    result: Mapping[str, Mapping[str, Mapping[str, Any] | None]]


def migrate(world: World, uuid: str, destination: str | None, live: bool) -> CloudOperation:
    """Return the operation that moves an instance; raises ActionFailed if it is not possible.

    Without a destination, the target is the host with the most free vcpus.
    """
    instance = _instance(world, uuid)
    name, source = instance["name"], instance["host"]
    if instance["status"] != "ACTIVE" and (live or source is None):
        ways = "live" if live else "at all"
        raise ActionFailed(f"{name} is {instance['status']} and cannot be moved {ways}")
    if destination == source:
        raise ActionFailed(f"{name} is on {source} already")
    _must_be_on(world, source)
    need = room_needed(world, instance["flavor"])
    target = destination or choose_host(world, need, name, source)
    _must_receive(world, target)
    must_have_room(target, free_on_hosts(world)[target], need, name)
    return CloudOperation(
        operation="migrate",
        what=f"the move of {name} to {target}",
        seconds=world["durations"]["live_migrate" if live else "cold_migrate"],
        names=(*_names(world, "instances", uuid), source, target),
        changes=(f"instance:{uuid}",),
        uses=(f"host:{source}", f"host:{target}"),
        holds={f"host:{target}": need},
        result={"instances": {uuid: {"host": target}}},
    )


def resize(world: World, uuid: str, flavor: str) -> CloudOperation:
    """Return the operation that changes the flavor of an instance; the instance keeps its host.

    Raises ActionFailed if it is not possible.
    """
    instance = _instance(world, uuid)
    name, host = instance["name"], instance["host"]
    if flavor not in world["flavors"]:
        raise ActionFailed(f"there is no flavor {flavor}")
    if host is None:
        raise ActionFailed(f"{name} is {instance['status']} and cannot be resized")
    _must_be_on(world, host)
    old, new = room_needed(world, instance["flavor"]), room_needed(world, flavor)
    more = {room: max(0, new[room] - old[room]) for room in ROOM}
    must_have_room(host, free_on_hosts(world)[host], more, f"{name} as {flavor}")
    return CloudOperation(
        operation="resize",
        what=f"the resize of {name} to {flavor}",
        seconds=world["durations"]["resize"],
        names=(*_names(world, "instances", uuid), host),
        changes=(f"instance:{uuid}",),
        uses=(f"host:{host}",),
        holds={f"host:{host}": more},
        result={"instances": {uuid: {"flavor": flavor}}},
    )


def set_instance_status(world: World, uuid: str, status: str) -> CloudOperation:
    """Return the operation that stops, starts or shelves an instance.

    A shelved instance is on no host and uses no capacity; a host is chosen when it is started.
    Raises ActionFailed if it is not possible.
    """
    operation, what, possible = _STATUSES[status]
    instance = _instance(world, uuid)
    name, host = instance["name"], instance["host"]
    if instance["status"] not in possible:
        raise ActionFailed(f"{name} is {instance['status']} and cannot become {status}")
    need: dict[str, int] = {}
    if host is None:
        need = room_needed(world, instance["flavor"])
        host = choose_host(world, need, name, None)
    _must_be_on(world, host)
    return CloudOperation(
        operation=operation,
        what=f"{what} of {name}",
        seconds=world["durations"][operation],
        names=(*_names(world, "instances", uuid), host),
        changes=(f"instance:{uuid}",),
        uses=(f"host:{host}",),
        holds={f"host:{host}": need},
        result={
            "instances": {uuid: {"status": status, "host": None if status == "SHELVED" else host}}
        },
    )


def create_instance(world: World, uuid: str, name: str, flavor: str | None) -> CloudOperation:
    """Return the operation that creates an instance on the host with the most free vcpus.

    Raises ActionFailed if it is not possible, also if the name is used already.
    """
    if flavor is None:
        raise ActionFailed(f"{name} cannot be created: its definition has no flavor")
    if flavor not in world["flavors"]:
        raise ActionFailed(f"there is no flavor {flavor}")
    if named(world, name) is not None:
        raise ActionFailed(f"there is an instance {name} already")
    need = room_needed(world, flavor)
    host = choose_host(world, need, name, None)
    return CloudOperation(
        operation="create",
        what=f"the creation of {name}",
        seconds=world["durations"]["create"],
        names=(name, host),
        changes=(f"instance:{uuid}", f"name:{name}"),
        uses=(f"host:{host}",),
        holds={f"host:{host}": need},
        result={
            "instances": {uuid: {"name": name, "host": host, "flavor": flavor, "status": "ACTIVE"}}
        },
    )


def named(world: World, name: str) -> str | None:
    """Return the uuid of the only instance of that name, or None.

    Raises ActionFailed if there are several.
    """
    found = [uuid for uuid, instance in world["instances"].items() if instance["name"] == name]
    if len(found) > 1:
        raise ActionFailed(f"{len(found)} instances are called {name}: name the uuid")
    return found[0] if found else None


def delete_instance(world: World, uuid: str) -> CloudOperation:
    """Return the operation that deletes an instance and detaches its volumes, which stay."""
    instance = _instance(world, uuid)
    attached = [key for key, volume in world["volumes"].items() if volume["instance"] == uuid]
    return CloudOperation(
        operation="delete",
        what=f"the removal of {instance['name']}",
        seconds=world["durations"]["delete"],
        names=_names(world, "instances", uuid),
        changes=(f"instance:{uuid}", *(f"volume:{key}" for key in attached)),
        result={
            "instances": {uuid: None},
            "volumes": {key: {"instance": None} for key in attached},
        },
    )


def set_service_status(world: World, host: str, status: str, reason: str | None) -> CloudOperation:
    """Return the operation that enables or disables the compute service of a host.

    The host may be off. Raises ActionFailed if it has no compute service.
    """
    if host not in world["services"]:
        raise ActionFailed(f"there is no compute service on {host}")
    return CloudOperation(
        operation="service",
        what=f"{'enabling' if status == 'enabled' else 'disabling'} {host}",
        seconds=world["durations"]["service"],
        names=(host,),
        changes=(f"service:{host}",),
        result={"services": {host: {"status": status, "reason": reason}}},
    )


def set_host_power(world: World, host: str, power: str) -> CloudOperation:
    """Return the operation that switches a host on or off, or suspends it.

    Raises ActionFailed for off and suspended while ACTIVE instances are on it.
    """
    if host not in world["hosts"]:
        raise ActionFailed(f"there is no host {host}")
    running = [
        instance["name"]
        for instance in world["instances"].values()
        if instance["host"] == host and instance["status"] == "ACTIVE"
    ]
    if running and power != "on":
        names = ", ".join(sorted(running))
        raise ActionFailed(f"{host} still runs {names}: {_POWERS[power]} it is refused")
    return CloudOperation(
        operation="power",
        what=f"{_POWERS[power]} {host}",
        seconds=world["durations"]["power"],
        names=(host,),
        changes=(f"host:{host}",),
        result={"hosts": {host: {"power": power}}},
    )


def migrate_volume(
    world: World, uuid: str, pool: str | None, volume_type: str | None
) -> CloudOperation:
    """Return the operation that moves a volume to another pool, changes its type, or both.

    None leaves the pool or the type as it is. Raises ActionFailed if it is not possible.
    """
    volume = world["volumes"].get(uuid)
    if volume is None:
        raise ActionFailed(f"there is no volume {uuid}")
    name, size = volume["name"], volume["size_gb"]
    pool, volume_type = pool or volume["pool"], volume_type or volume["type"]
    if pool not in world["pools"]:
        raise ActionFailed(f"there is no pool {pool}")
    if volume_type is not None and volume_type not in world["volume_types"]:
        raise ActionFailed(f"there is no volume type {volume_type}")
    holds = {}
    if pool != volume["pool"]:
        holds = {f"pool:{pool}": {"size_gb": size}}
        must_have_room(pool, {"size_gb": free_in_pool(world, pool)}, {"size_gb": size}, name)
    return CloudOperation(
        operation="volume_migrate",
        what=f"the move of {name} to {pool}" if holds else f"the retype of {name} to {volume_type}",
        seconds=world["durations"]["volume_migrate"],
        names=_names(world, "volumes", uuid),
        changes=(f"volume:{uuid}",),
        holds=holds,
        result={"volumes": {uuid: {"pool": pool, "type": volume_type}}},
    )


def refuse_conflicts(world: World, work: CloudOperation) -> None:
    """Raise ActionFailed if an ongoing operation locks entries of ``work``.

    See :class:`CloudOperation` for the entries that it locks.
    """
    changes, uses = set(work.changes), set(work.uses)
    for other in world["ongoing"]:
        if changes & {*other["changes"], *other["uses"]} or uses & {*other["changes"]}:
            raise ActionFailed(f"{work.what} cannot begin: {other['what']} goes on")


def take_fault(world: World, work: CloudOperation) -> dict[str, Any] | None:
    """Return the first fault that matches ``work``, or None; reduce its ``times`` by one.

    A fault whose ``times`` reach 0 is removed from the cloud.
    """
    for fault in world["faults"]:
        if fault["operation"] not in ("*", work.operation):
            continue
        if fault["target"] not in ("*", *work.names):
            continue
        if fault["times"] is not None:
            fault["times"] -= 1
            if not fault["times"]:
                world["faults"].remove(fault)
        return dict(fault)
    return None


def commit(world: World, work: CloudOperation) -> None:
    """Write the result of an operation into the cloud, which is changed in place."""
    for table, entries in work.result.items():
        for key, fields in entries.items():
            if fields is None:
                del world[table][key]
            else:
                world[table][key] = {**world[table].get(key, {}), **fields}


def _instance(world: World, uuid: str) -> dict[str, Any]:
    if uuid not in world["instances"]:
        raise ActionFailed(f"there is no instance {uuid}")
    instance: dict[str, Any] = world["instances"][uuid]
    return instance


def _names(world: World, table: str, uuid: str) -> tuple[str, ...]:
    """Return the targets of faults that stand for an entry: its uuid, and its name if unique."""
    name = world[table][uuid]["name"]
    entries = [*world["instances"].values(), *world["volumes"].values()]
    unique = sum(entry["name"] == name for entry in entries) == 1
    return (uuid, name) if unique else (uuid,)


def _must_be_on(world: World, host: str) -> None:
    power = world["hosts"][host]["power"]
    if power != "on":
        raise ActionFailed(f"{host} is {power}")


def _must_receive(world: World, host: str) -> None:
    if host not in world["hosts"]:
        raise ActionFailed(f"there is no host {host}")
    _must_be_on(world, host)
    if world["services"][host]["status"] != "enabled":
        raise ActionFailed(f"{host} is disabled")
