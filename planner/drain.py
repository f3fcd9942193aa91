# SPDX-License-Identifier: Apache-2.0
"""Makes the solution documents that empty hosts, and those that take hosts back into use."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from planner.errors import InvalidInput, Mistake, accepted
from planner.plan.extent import Members, labelled, listed

Facts = Mapping[str, Any]
#: The migration type by the status of an instance. An instance of another status is not moved.
MIGRATION_TYPES = {"ACTIVE": "live", "SHUTOFF": "cold"}


class Drained(NamedTuple):
    """The solution that empties hosts, and the reason for each instance that stays, by its id."""

    document: Mapping[str, Any]
    stays: Mapping[str, str]


def drain(
    facts: Facts,
    hosts: Sequence[str],
    *,
    reason: str,
    power_off: bool = False,
    scheduler: bool = False,
) -> Drained:
    """Return a solution document that empties hosts, and the instances that stay on them.

    Its actions disable the services of the hosts, move their instances away and, with
    ``power_off``, power off each host on which no instance stays. An instance stays if it cannot be
    moved. With ``scheduler``, an instance for which no host is found is moved to one that the cloud
    chooses. Raises InvalidInput, listing all hosts that do not exist.
    """
    hosts = _existing(facts, hosts)
    leaving = frozenset(hosts)
    on_them = {i: at for i, at in facts["instances"].items() if at.get("host") in leaving}
    movable = {i: at for i, at in on_them.items() if at.get("status") in MIGRATION_TYPES}
    destinations, unplaced = place(movable, facts, leaving)
    stays = {
        i: f"it is {instance.get('status')}: only ACTIVE and SHUTOFF instances are moved"
        for i, instance in on_them.items()
        if i not in movable
    }
    moves: dict[str, str | None] = dict(destinations)
    if scheduler:
        moves.update(dict.fromkeys(unplaced))
    else:
        stays.update(unplaced)
    kept = {on_them[i]["host"] for i in stays}
    names = Counter(on_them[i].get("name") for i in moves)
    return Drained(
        _document(
            "drain",
            hosts,
            facts,
            [
                *(_service(host, "disabled", disabled_reason=reason) for host in hosts),
                *(_move(i, on_them[i], to, names) for i, to in moves.items()),
                *(_power(host, "off") for host in hosts if power_off and host not in kept),
            ],
        ),
        stays,
    )


def undrain(facts: Facts, hosts: Sequence[str]) -> Mapping[str, Any]:
    """Return a solution document that takes hosts back into use.

    Its actions power on the hosts that are known to be off or suspended, and enable their services.
    Raises InvalidInput, listing all hosts that do not exist.
    """
    hosts = _existing(facts, hosts)
    known = facts.get("hosts", {})
    off = [host for host in hosts if known.get(host, {}).get("power") in ("off", "suspended")]
    actions = [*(_power(host, "on") for host in off), *(_service(h, "enabled") for h in hosts)]
    return _document("undrain", hosts, facts, actions)


def with_labels(facts: Facts, labels: Mapping[str, str]) -> list[str]:
    """Return the compute hosts that have all labels, by name; raises InvalidInput if none has."""
    hosts = facts.get("hosts", {})
    found = sorted(labelled(facts, labels).keys() & facts.get("services", {}).keys())
    if not found:
        wanted = ", ".join(f"{label}={value}" for label, value in labels.items())
        known = {
            f"{label}={value}"
            for host in hosts.values()
            for label, values in (host.get("labels") or {}).items()
            for value in listed(values)
        }
        text = f"no compute host has it; {accepted(wanted, known)}"
        raise InvalidInput([Mistake(text, place=f"--label {wanted}")])
    return found


def _existing(facts: Facts, hosts: Iterable[str]) -> list[str]:
    known: Collection[str] = facts.get("services", {})
    wanted = list(dict.fromkeys(hosts))
    wrong = [host for host in wanted if host not in known]
    if wrong:
        text = "there is no compute service on this host"
        raise InvalidInput(Mistake(f"{text}; {accepted(h, known)}", place=h) for h in wrong)
    return wanted


def _document(
    verb: str, hosts: Sequence[str], facts: Facts, actions: list[dict[str, Any]]
) -> dict[str, Any]:
    name = hosts[0] if len(hosts) == 1 else f"{len(hosts)}-hosts"
    source: dict[str, Any] = {key: facts[key] for key in ("cloud", "at") if key in facts}
    members = Members(facts)
    totals = {**dict.fromkeys(members.kinds, 0), **members.totals}
    source["totals"] = dict(sorted(totals.items()))
    source["belongs_to"] = {
        token: names
        for token in dict.fromkeys(_tokens(hosts, actions))
        if (names := sorted(name for name in members.names(token) if "/" in name))
    }
    return {"kind": "solution", "name": f"{verb}-{name}", "actions": actions, "facts": source}


def _tokens(hosts: Iterable[str], actions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the tokens of the hosts and instances that actions touch."""
    yield from (f"node:{host}" for host in hosts)
    for action in actions:
        if destination := action["input_parameters"].get("destination_node"):
            yield f"node:{destination}"
        if action["action_type"] == "migrate":
            yield f"instance:{action['resource_id']}"


def _move(
    uuid: str, instance: Mapping[str, Any], destination: str | None, names: Counter[Any]
) -> dict[str, Any]:
    name = instance.get("name")
    parameters = {
        **({"resource_name": name} if name else {}),
        "migration_type": MIGRATION_TYPES[instance["status"]],
        "source_node": instance["host"],
        **({"destination_node": destination} if destination else {}),
    }
    return {
        "name": f"move-{name if name and names[name] == 1 else uuid}",
        "action_type": "migrate",
        "resource_id": uuid,
        "input_parameters": parameters,
    }


def _service(host: str, state: str, **more: str) -> dict[str, Any]:
    return {
        "name": f"{state.removesuffix('d')}-{host}",
        "action_type": "change_nova_service_state",
        "resource_id": host,
        "input_parameters": {"state": state, **more},
    }


def _power(host: str, state: str) -> dict[str, Any]:
    return {
        "name": f"power-{state}-{host}",
        "action_type": "change_node_power_state",
        "resource_id": host,
        "input_parameters": {"state": state},
    }


#: The kinds of capacity, with their units in messages.
ROOM = {"vcpus": "vcpus", "ram_mb": "MB of memory", "disk_gb": "GB of disk"}


class Placement(NamedTuple):
    """The new host of each instance, by its id, or the reason why there is none."""

    destinations: Mapping[str, str]
    refused: Mapping[str, str]


class _Group(NamedTuple):
    """A server group that keeps at most ``most`` of its members on a host."""

    uuid: str
    name: str
    most: int


def place(instances: Collection[str], facts: Facts, leaving: Collection[str]) -> Placement:
    """Place instances on hosts that are not ``leaving``; each has a destination or a reason.

    The largest instance comes first, by vcpus, then by memory, then by disk; each goes to the host
    that has the most room left, in this order, of equal ones to the first by name. If an instance
    then finds no host, all are placed anew, each on the first host by name that has room: that
    leaves larger gaps, and is taken unless more instances stay. Equal facts give equal placements.
    The time is linear in instances and in hosts, for each amount of capacity that instances take.

    A host receives instances if its service is enabled and up, it is not off, and instances do not
    have to leave it, too. Its room is ``free`` in the facts; a kind of capacity that is missing
    there is not limited. Of a server group with the policy anti-affinity, a host receives only as
    many instances as the group allows. An instance in a group with the policy affinity is not
    placed if the group has others: the policy forbids to move them one by one. Soft policies are
    ignored.

    >>> facts = {"instances": {"i": {"host": "a", "flavor": "f"}}, "flavors": {"f": {"vcpus": 2}},
    ...          "hosts": {"b": {"free": {"vcpus": 1}}, "c": {"free": {"vcpus": 2}}},
    ...          "services": {"b": {"status": "enabled"}, "c": {"status": "enabled"}}}
    >>> place(["i"], facts, ["a"])
    Placement(destinations={'i': 'c'}, refused={})
    >>> place(["i"], facts, ["a", "c"]).refused
    {'i': 'no host that is enabled and up has room for it: it needs 2 vcpus'}
    """
    spread = _placed(instances, facts, leaving, rank=_fullness)
    if not spread.refused:
        return spread
    packed = _placed(instances, facts, leaving, rank=lambda _: ())
    return packed if len(packed.refused) <= len(spread.refused) else spread


#: What is free on a host gives its place in a queue; those of one place are sorted by name.
_Rank = Callable[[Mapping[str, int]], tuple[float, ...]]


def _placed(
    instances: Collection[str], facts: Facts, leaving: Collection[str], rank: _Rank
) -> Placement:
    free = {host: dict(facts["hosts"][host]["free"]) for host in _receiving(facts, leaving)}
    known = facts["instances"]
    apart, together = _apart(facts), _together(facts)
    on_host = Counter((g, known[i].get("host")) for i in apart if i in known for g in apart[i])
    queues: dict[tuple[tuple[str, int], ...], _Queue] = {}
    destinations, refused = {}, {}
    for instance in sorted(instances, key=lambda i: _size(facts, i)):
        need = need_of(facts, instance)
        if need is None:
            refused[instance] = f"its flavor {known[instance].get('flavor')} is not known"
            continue
        if instance in together:
            refused[instance] = f"server group {together[instance]} keeps its instances together"
            continue
        alike, groups = tuple(need.items()), apart.get(instance, ())
        if alike not in queues:
            queues[alike] = _Queue(need, free, rank)
        host, kept_out = queues[alike].first(groups, on_host)
        if host is None:
            refused[instance] = _why(need, kept_out, groups)
            continue
        destinations[instance] = host
        for room in need.keys() & free[host].keys():
            free[host][room] -= need[room]
        on_host.update((group, host) for group in groups)
    return Placement(destinations, refused)


class _Queue:
    """The hosts for instances that need as much as each other, by rank; ``free`` only shrinks."""

    def __init__(
        self, need: Mapping[str, int], free: Mapping[str, Mapping[str, int]], rank: _Rank
    ) -> None:
        self._need, self._free, self._rank = need, free, rank
        self._hosts = sorted((rank(room), host) for host, room in free.items())

    def first(
        self, groups: Collection[_Group], on_host: Mapping[tuple[_Group, Any], int]
    ) -> tuple[str | None, bool]:
        """Return the first host that has room and that all ``groups`` of an instance allow.

        None if there is none. Also returns whether a host before it had room, but a group that has
        its most instances there already.
        """
        found, aside = None, []
        while self._hosts and found is None:
            before, host = self._hosts[0]
            now = self._rank(self._free[host])
            if not _fits(self._need, self._free[host]):
                heapq.heappop(self._hosts)  # it never has room again
            elif now != before:
                heapq.heapreplace(self._hosts, (now, host))
            elif all(on_host[group, host] < group.most for group in groups):
                found = host
            else:
                aside.append(heapq.heappop(self._hosts))
        for entry in aside:
            heapq.heappush(self._hosts, entry)
        return found, bool(aside)


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


def _apart(facts: Facts) -> Mapping[str, list[_Group]]:
    """Map each member of anti-affinity groups to these."""
    found: dict[str, list[_Group]] = defaultdict(list)
    for uuid, group in sorted(facts.get("server_groups", {}).items()):
        if group["policy"] == "anti-affinity":
            made = _Group(uuid, group.get("name") or uuid, group.get("max_server_per_host") or 1)
            for member in dict.fromkeys(group["members"]):
                found[member].append(made)
    return found


def _together(facts: Facts) -> dict[str, str]:
    """Map the members of each affinity group with several existing members to the group's name."""
    found = {}
    for uuid, group in sorted(facts.get("server_groups", {}).items()):
        members = [i for i in group["members"] if i in facts["instances"]]
        if group["policy"] == "affinity" and len(members) > 1:
            found.update(dict.fromkeys(members, group.get("name") or uuid))
    return found


def _why(need: Mapping[str, int], kept_out: bool, groups: Collection[_Group]) -> str:
    if kept_out:
        names = ", ".join(group.name for group in groups)
        return f"each host with room for it has as many of server group {names} as it may"
    wanted = ", ".join(f"{need[room]} {unit}" for room, unit in ROOM.items() if room in need)
    return f"no host that is enabled and up has room for it: it needs {wanted}"
