# SPDX-License-Identifier: Apache-2.0
"""Computes free and needed capacity in a simulated cloud, and chooses hosts by it."""

from __future__ import annotations

from collections.abc import Mapping

from applier.clouds.simulated_document import ROOM, World
from applier.errors import ActionFailed

_UNITS = {"vcpus": "vcpus", "ram_mb": "MB of memory", "disk_gb": "GB of disk", "size_gb": "GB"}


def free_on_hosts(world: World) -> dict[str, dict[str, int]]:
    """Return the free vcpus, ram_mb and disk_gb by host; reserved capacity counts as used.

    Ongoing operations reserve capacity.
    """
    free = {name: {room: host[room] for room in ROOM} for name, host in world["hosts"].items()}
    taken = [
        (instance["host"], world["flavors"][instance["flavor"]])
        for instance in world["instances"].values()
    ]
    for other in world["ongoing"]:
        taken += [(place.removeprefix("host:"), room) for place, room in other["holds"].items()]
    for host, amounts in taken:
        if host in free:
            for room in ROOM:
                free[host][room] -= amounts.get(room, 0)
    return free


def free_in_pool(world: World, pool: str) -> int:
    """Return the free GB of a pool; reservations of ongoing operations count as used."""
    used: int = sum(v["size_gb"] for v in world["volumes"].values() if v["pool"] == pool)
    held: int = sum(o["holds"].get(f"pool:{pool}", {}).get("size_gb", 0) for o in world["ongoing"])
    size: int = world["pools"][pool]["size_gb"]
    return size - used - held


def room_needed(world: World, flavor: str) -> dict[str, int]:
    """Return the capacity that an instance of a flavor uses on its host."""
    return {room: world["flavors"][flavor][room] for room in ROOM}


def must_have_room(place: str, free: Mapping[str, int], need: Mapping[str, int], name: str) -> None:
    """Raise ActionFailed, with every shortage, if less is free than needed.

    In the message, ``place`` is the host or pool, and ``name`` the instance or volume.
    """
    short = [
        f"{need[room]} {_UNITS[room]}, {free[room]} free"
        for room in need
        if need[room] > free[room]
    ]
    if short:
        raise ActionFailed(f"{place} has no room for {name}: needs {'; '.join(short)}")


def choose_host(world: World, need: Mapping[str, int], name: str, source: str | None) -> str:
    """Return the host with the most free vcpus on which ``name`` fits.

    Of equal hosts it is the first by name. ``source`` and hosts that are off or disabled are left
    out. Raises ActionFailed if no host fits.
    """
    free = {
        host: room
        for host, room in sorted(free_on_hosts(world).items())
        if host != source
        and world["hosts"][host]["power"] == "on"
        and world["services"][host]["status"] == "enabled"
    }
    fits = [host for host in free if all(need[room] <= free[host][room] for room in need)]
    if not fits:
        wanted = ", ".join(f"{need[room]} {_UNITS[room]}" for room in need)
        raise ActionFailed(f"no enabled host has room for {name}: needs {wanted}")
    return max(fits, key=lambda host: free[host]["vcpus"])
