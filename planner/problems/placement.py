# SPDX-License-Identifier: Apache-2.0
"""Finds hosts for instances that have to leave theirs, and spreads them.

The largest instance comes first, by vcpus, then by memory, then by disk; each goes to the host that
has the most room left, in this order, of equal ones to the first by name. If an instance then finds
no host, all are placed anew, each on the first host by name that has room: that leaves larger gaps,
and is taken unless more instances stay.

A host receives instances if its service is enabled and up, it is not off, and instances do not have
to leave it, too. Its room is ``free`` in the facts; a kind of capacity that is missing there is not
limited. Of a server group with the policy anti-affinity, a
host receives only as many instances as the group allows. An instance in a group with the policy
affinity is not placed if the group has others: the policy forbids to move them one by one. Soft
policies are ignored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

Facts = Mapping[str, Any]
#: The kinds of capacity, with their units in messages.
ROOM = {"vcpus": "vcpus", "ram_mb": "MB of memory", "disk_gb": "GB of disk"}


class Placement(NamedTuple):
    """The new host of each instance, by its id, or the reason why there is none."""

    destinations: Mapping[str, str]
    refused: Mapping[str, str]


class _Group(NamedTuple):
    """A server group that keeps at most ``most`` of its members on a host."""

    name: str
    members: frozenset[str]
    most: int


def place(instances: Collection[str], facts: Facts, leaving: Collection[str]) -> Placement:
    """Place instances on hosts that are not ``leaving``; each has a destination or a reason.

    Equal facts give equal placements.

    >>> facts = {"instances": {"i": {"host": "a", "flavor": "f"}}, "flavors": {"f": {"vcpus": 2}},
    ...          "hosts": {"b": {"free": {"vcpus": 1}}, "c": {"free": {"vcpus": 2}}},
    ...          "services": {"b": {"status": "enabled"}, "c": {"status": "enabled"}}}
    >>> place(["i"], facts, ["a"])
    Placement(destinations={'i': 'c'}, refused={})
    >>> place(["i"], facts, ["a", "c"]).refused
    {'i': 'no host that is enabled and up has room for it: it needs 2 vcpus'}
    """
    spread = _placed(instances, facts, leaving, most_room=True)
    if not spread.refused:
        return spread
    packed = _placed(instances, facts, leaving, most_room=False)
    return packed if len(packed.refused) <= len(spread.refused) else spread


def _placed(
    instances: Collection[str], facts: Facts, leaving: Collection[str], *, most_room: bool
) -> Placement:
    free = {host: dict(facts["hosts"][host]["free"]) for host in _receiving(facts, leaving)}
    known = facts["instances"]
    apart = _apart(facts)
    on_host = Counter((g, known[i].get("host")) for g in apart for i in g.members if i in known)
    together = _together(facts)
    destinations, refused = {}, {}
    for instance in sorted(instances, key=lambda i: _size(facts, i)):
        need = need_of(facts, instance)
        if need is None:
            refused[instance] = f"its flavor {known[instance].get('flavor')} is not known"
            continue
        if instance in together:
            refused[instance] = f"server group {together[instance]} keeps its instances together"
            continue
        groups = [group for group in apart if instance in group.members]
        fits = [host for host in free if _fits(need, free[host])]
        allowed = [host for host in fits if all(on_host[g, host] < g.most for g in groups)]
        if most_room:
            allowed.sort(key=lambda host: _fullness(free[host]))  # which keeps the order of names
        host = next(iter(allowed), None)
        if host is None:
            refused[instance] = _why(need, fits, groups)
            continue
        destinations[instance] = host
        for room in need.keys() & free[host].keys():
            free[host][room] -= need[room]
        on_host.update((group, host) for group in groups)
    return Placement(destinations, refused)


def need_of(facts: Facts, instance: str) -> dict[str, int] | None:
    """Return the capacity that an instance takes on its host; None if its flavor is not known."""
    flavor = facts.get("flavors", {}).get(facts["instances"][instance].get("flavor"))
    return None if flavor is None else {room: flavor[room] for room in ROOM if room in flavor}


def _receiving(facts: Facts, leaving: Collection[str]) -> Iterator[str]:
    for name, host in sorted(facts.get("hosts", {}).items()):
        service = facts.get("services", {}).get(name, {})
        is_up = service.get("state") != "down" and host.get("power") in (None, "on")
        if name not in leaving and service.get("status") == "enabled" and is_up and "free" in host:
            yield name


def _size(facts: Facts, instance: str) -> tuple[Any, ...]:
    """Return the sort key of an instance: the largest first, those of one size by name."""
    need = need_of(facts, instance) or {}
    name = str(facts["instances"][instance].get("name") or "")
    return (*(-need.get(room, 0) for room in ROOM), name, instance)


def _fits(need: Mapping[str, int], free: Mapping[str, int]) -> bool:
    return all(need[room] <= free[room] for room in need.keys() & free.keys())


def _fullness(free: Mapping[str, int]) -> tuple[float, ...]:
    """Return the sort key of a host: the one with the most room first; unlimited is the most."""
    return tuple(-free.get(room, math.inf) for room in ROOM)


def _apart(facts: Facts) -> list[_Group]:
    return [
        _Group(
            group.get("name") or uuid,
            frozenset(group["members"]),
            group.get("max_server_per_host") or 1,
        )
        for uuid, group in sorted(facts.get("server_groups", {}).items())
        if group["policy"] == "anti-affinity"
    ]


def _together(facts: Facts) -> dict[str, str]:
    """Map the members of each affinity group with several existing members to the group's name."""
    found = {}
    for uuid, group in sorted(facts.get("server_groups", {}).items()):
        members = [i for i in group["members"] if i in facts["instances"]]
        if group["policy"] == "affinity" and len(members) > 1:
            found.update(dict.fromkeys(members, group.get("name") or uuid))
    return found


def _why(need: Mapping[str, int], fits: Collection[str], groups: Collection[_Group]) -> str:
    if fits:
        names = ", ".join(group.name for group in groups)
        return f"each host with room for it has as many of server group {names} as it may"
    wanted = ", ".join(f"{need[room]} {unit}" for room, unit in ROOM.items() if room in need)
    return f"no host that is enabled and up has room for it: it needs {wanted}"
