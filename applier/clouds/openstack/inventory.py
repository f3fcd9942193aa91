# SPDX-License-Identifier: Apache-2.0
"""Reads a whole cloud: one list call for all servers, one for all services, and so on.

The free capacity of a host is its capacity in Placement less what is used, so overcommitment and
reservations count. One call returns it for all hosts with free memory; any other host counts as
full. Free disk is left out: whether a server uses any depends on its volumes, and hosts may share
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from openstack import exceptions

from applier.clouds.openstack import volumes
from applier.clouds.openstack.compute import Compute, answered, room_of
from applier.clouds.openstack.power import POWERS
from applier.clouds.openstack.server_fields import is_gone, view

Answer = TypeVar("Answer")
_CANDIDATES = "/allocation_candidates?resources=MEMORY_MB:1"
#: The first microversion of Placement whose answer has all resources of a provider.
_WHOLE_SUMMARIES = "1.27"
#: Names of Placement for the kinds of capacity.
_CLASSES = {"vcpus": "VCPU", "ram_mb": "MEMORY_MB"}
#: The labels of a host for the names of its aggregates and for its zone, besides the metadata of
#: the aggregates; and the key of the zone in that metadata, which is left out.
AGGREGATE, ZONE, _ZONE_OF_AGGREGATE = "aggregate", "zone", "availability_zone"
_DISK = {"disk_gb": "DISK_GB"}


class Inventory:
    """The contents of a cloud; ``connection`` is that of openstacksdk."""

    def __init__(self, connection: Any, compute: Compute) -> None:
        self._connection, self._compute, self._nova = connection, compute, compute.nova

    def facts(self, cloud: str) -> dict[str, Any]:
        """Return the facts of a cloud of this name: see ``Cloud.facts``."""
        at = datetime.now(UTC)
        servers = self._list(self._servers)
        services = self._list(self._compute_services)
        return {
            "cloud": cloud,
            "at": at.isoformat(timespec="seconds"),
            "instances": {server.id: view(server) for server in servers if not is_gone(server)},
            "hosts": self._hosts(services),
            "services": _services(services),
            "volumes": self._volumes(servers),
            "flavors": self._flavors(servers),
            "server_groups": self._server_groups(),
        }

    def _servers(self) -> Iterator[Any]:
        """Yield the servers; with any filter Nova would leave out those of a cell that is down."""
        for server in self._nova.servers(all_projects=True):
            yield answered(server, f"instance {server.id}")

    def _compute_services(self) -> Iterator[Any]:
        for service in self._nova.services(binary="nova-compute"):
            yield answered(service, f"host {service.host}")

    def _hosts(self, services: list[Any]) -> dict[str, dict[str, Any]]:
        """Return capacity, power and labels by host, as far as they are known.

        A host with several hypervisors is a service in front of bare metal: it has no capacity.
        """
        hypervisors = self._list(lambda: self._nova.hypervisors(details=True))
        found, powers = self._capacities(), self._powers()
        labels = _labels(services, self._list(self._nova.aggregates))
        by_host: dict[str, list[str]] = {}
        for hypervisor in hypervisors:
            by_host.setdefault(hypervisor.service_details["host"], []).append(hypervisor.id)
        hosts: dict[str, dict[str, Any]] = {}
        for host, ids in by_host.items():
            power = {"power": powers[host]} if host in powers else {}
            labelled = {"labels": labels[host]} if host in labels else {}
            room = _room(found.get(ids[0])) if len(ids) == 1 else {}
            hosts[host] = {**room, **power, **labelled}
        return hosts

    def _capacities(self) -> Mapping[str, Mapping[str, Any]]:
        """Return capacity and use of each resource by hypervisor id, for hosts with free memory."""

        def read() -> Any:
            answer = self._connection.placement.get(_CANDIDATES, microversion=_WHOLE_SUMMARIES)
            exceptions.raise_from_response(answer)
            return answer.json()["provider_summaries"]

        summaries = self._compute.calls.read(read) or {}
        return {uuid: summary["resources"] for uuid, summary in summaries.items()}

    def _powers(self) -> dict[str, str]:
        """Return the power (on, off) of the nodes of Ironic by name, if there is Ironic."""
        if not self._connection.has_service("baremetal"):
            return {}
        nodes = self._list(lambda: self._connection.baremetal.nodes(fields=["name", "power_state"]))
        known = [node for node in nodes if node.name and node.power_state in POWERS]
        return {node.name: POWERS[node.power_state] for node in known}

    def _flavors(self, servers: list[Any]) -> dict[str, dict[str, Any]]:
        """Return the flavors, and those that servers still have although they were deleted."""
        flavors = self._list(lambda: self._nova.flavors(is_public="None"))
        kept = {s.flavor.get("original_name"): s.flavor for s in servers if s.flavor}
        return {
            name: room_of(flavor)
            for name, flavor in {**kept, **{f.name: f for f in flavors}}.items()
            if name
        }

    def _volumes(self, servers: list[Any]) -> dict[str, dict[str, Any]]:
        """Return all volumes by id.

        Without Cinder, only attached ones are known, and of each only its instance.
        """
        found: dict[str, dict[str, Any]] = {
            volume["id"]: {"instance": server.id}
            for server in servers
            for volume in server.attached_volumes or ()
        }
        if self._connection.has_service("block-storage"):
            cinder = self._connection.block_storage
            listed = self._list(lambda: cinder.volumes(all_projects=True))
            found |= {volume.id: volumes.view(volume) for volume in listed}
        return found

    def _server_groups(self) -> dict[str, dict[str, Any]]:
        found = self._list(lambda: self._nova.server_groups(all_projects=True))
        return {group.id: dict(_group(group)) for group in found}

    def _list(self, call: Callable[[], Any]) -> list[Any]:
        return self._compute.calls.read(lambda: list(call())) or []


def _services(found: list[Any]) -> dict[str, dict[str, Any]]:
    return {
        service.host: {
            "status": service.status,
            "reason": service.disabled_reason,
            "state": service.state,
        }
        for service in found
    }


def _labels(services: list[Any], aggregates: list[Any]) -> dict[str, dict[str, Any]]:
    """Return the labels of hosts: metadata of their aggregates, the names of those, their zone.

    A label that has several values, such as the aggregates of a host, is a list.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for aggregate in sorted(aggregates, key=lambda one: str(one.name)):
        metadata = {str(key): str(value) for key, value in (aggregate.metadata or {}).items()}
        metadata.pop(_ZONE_OF_AGGREGATE, None)
        for host in aggregate.hosts or ():
            labels = found.setdefault(host, {})
            for label, value in {**metadata, AGGREGATE: str(aggregate.name)}.items():
                known = labels.setdefault(label, [])
                known += [] if value in known else [value]
    for service in services:
        if service.availability_zone:
            found.setdefault(service.host, {})[ZONE] = [service.availability_zone]
    return {
        host: {label: v[0] if len(v) == 1 else v for label, v in labels.items()}
        for host, labels in found.items()
    }


def _room(resources: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the capacity of a host and how much is free: none if Placement did not list it."""
    if resources is None:
        return {"free": dict.fromkeys(_CLASSES, 0)}
    total = {
        room: resources[known]["capacity"]
        for room, known in {**_CLASSES, **_DISK}.items()
        if known in resources
    }
    free = {
        room: max(0, resources[known]["capacity"] - resources[known]["used"])
        for room, known in _CLASSES.items()
        if known in resources
    }
    return {**total, "free": free}


def _group(group: Any) -> Iterator[tuple[str, Any]]:
    yield "name", group.name
    yield "policy", group.policy or next(iter(group.policies or ()), None)
    yield "members", list(group.member_ids or ())
    if most := (group.rules or {}).get("max_server_per_host"):
        yield "max_server_per_host", most
