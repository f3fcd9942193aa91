# SPDX-License-Identifier: Apache-2.0
"""Makes the solution documents that empty hosts, and those that take hosts back into use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from planner.errors import InvalidInput, Mistake, accepted
from planner.plan.extent import Members, labelled, listed
from planner.problems.placement import Facts, place

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
    on_them = {i: at for i, at in facts["instances"].items() if at.get("host") in hosts}
    movable = [i for i, instance in on_them.items() if instance.get("status") in MIGRATION_TYPES]
    destinations, unplaced = place(movable, facts, hosts)
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
