# SPDX-License-Identifier: Apache-2.0
"""Switches hosts on and off by Ironic, whose node of a host must have the name of the host.

Ironic locks a node before it answers a request, and until the work is done. So the work is over
when the node has neither a lock (``reservation``) nor a ``target_power_state``. If its power state
is not the wanted one then, its ``last_error`` is the reason. A host is not switched off while
servers run on it or move to it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from applier.backoff import delays_s
from applier.clouds.openstack.calls import request_id
from applier.clouds.openstack.compute import CELL_IS_DOWN, Compute, Migration
from applier.clouds.openstack.moves import ENDED, FINISHED
from applier.clouds.openstack.server_fields import RUNNING, Server, task_of
from applier.contracts import Print, StopSignal, silent
from applier.errors import ActionFailed
from planner.errors import shown

#: A node of Ironic, as openstacksdk returns it.
Node = Any

#: The power states of Ironic that do not change by themselves.
POWERS = {"power on": "on", "power off": "off"}
_SOFT = "soft power off"
#: The first version of Ironic's API with a soft power-off, and a time-out for it.
_SOFT_SINCE = "1.27"
#: The seconds between two reads of a node: the first, and the longest.
_FIRST_S, _LONGEST_S = 0.25, 4.0
#: The statuses and the power states of servers whose memory would be lost.
_RUNS = {"ACTIVE", "PAUSED", "RESCUE", "PASSWORD", "VERIFY_RESIZE"}
_PAUSED = 3
#: The statuses of a migration that has ended, or waits for its confirmation.
_ENDED = ENDED | {FINISHED}


class Power:
    """The power of hosts; a soft power-off may take ``soft_s`` seconds, and is not tried if 0."""

    def __init__(self, connection: Any, compute: Compute, soft_s: float) -> None:
        self._connection, self._compute, self._soft_s = connection, compute, soft_s
        self._lock = threading.Lock()

    def host(self, host: str) -> Mapping[str, Any] | None:
        """Return ``power`` of a host: on, off, or unknown, which it is while it changes.

        Where Ironic has no node of that name, it is on if the compute service of the host is up,
        else unknown. None if there is neither a node nor a service.
        """
        node = self._node(host)
        if node is not None:
            return {"power": _power_of(node)}
        found = self._compute.services(host)
        return {"power": "on" if found[0].state == "up" else "unknown"} if found else None

    def set(self, host: str, power: str, stop: StopSignal, output: Print = silent) -> None:
        """Switch a host on or off, and wait until it is; do nothing if it is so already.

        Other work of Ironic on the node is waited for first. A hard power-off follows a soft one
        that was refused or has failed. Raises ActionFailed also while instances run on a host that
        is to be switched off.
        """
        what = f"switching {power} {host}"
        if power not in POWERS.values():
            raise ActionFailed(
                f"suspending {host} was refused: Ironic cannot suspend a host, only switch it on "
                "and off (change_node_power_state)"
            )
        node = self._settled(self._known(host, what), what, stop)
        targets = [f"power {power}"]
        if power == "off" and self._soft_s > 0:
            targets.insert(0, _SOFT)
        for target in targets:
            if _power_of(node) == power:
                return
            if power == "off":
                must_not_run(self._compute, host, what)
            self._begin(node, what, target, stop, output)
            node = self._settled(node, what, stop)
            if target == _SOFT and _power_of(node) != power:
                output(f"{what}: {_reason(node)}\n")
        if _power_of(node) != power:
            raise ActionFailed(f"{what} failed: {_reason(node)}")

    def _begin(self, node: Node, what: str, target: str, stop: StopSignal, output: Print) -> None:
        """Request a power state; a refusal of a soft power-off is printed and not raised."""
        body: dict[str, Any] = {"target": target}
        if target == _SOFT:
            body["timeout"] = max(1, round(self._soft_s))

        def request() -> str | None:
            path = f"/nodes/{node.id}/states/power"
            return request_id(self._ironic.put(path, json=body, microversion=_SOFT_SINCE))

        def has_begun() -> bool:
            now = self._node(node.id)
            return now is None or _is_busy(now) or now.power_state != node.power_state

        try:
            name = self._compute.calls.change(what, request, stop, has_begun)
        except ActionFailed as refused:
            if target != _SOFT or stop.is_set():
                raise
            output(f"{refused}\n")
        else:
            output(f"{what}: {target}" + (f", request {name}\n" if name else "\n"))

    def _settled(self, node: Node, what: str, stop: StopSignal) -> Node:
        """Wait until Ironic has no work on a node; return the node as it is then.

        Raises ActionFailed if the node was deleted, or once ``stop`` is set.
        """
        now = self._node(node.id)
        for delay_s in delays_s(_FIRST_S, _LONGEST_S):
            if now is None:
                raise ActionFailed(f"{what} failed: its node was deleted from Ironic meanwhile")
            if not _is_busy(now):
                return now
            if stop.wait(delay_s):
                aim = f" to {now.target_power_state}" if now.target_power_state else ""
                raise ActionFailed(f"{what} was stopped; Ironic goes on with its work{aim}")
            now = self._node(node.id)
        raise AssertionError

    def _known(self, host: str, what: str) -> Node:
        node = self._node(host)
        if node is None:
            has_ironic = self._compute.calls.read(lambda: self._ironic) is not None
            missing = (
                f"Ironic has no node {host}"
                if has_ironic
                else "the cloud has no Ironic: its catalog lists no bare metal service"
            )
            raise ActionFailed(f"{what} was refused: {missing}")
        return node

    def _node(self, name: str) -> Node | None:
        return self._compute.calls.read(lambda: self._ironic and self._ironic.find_node(name))

    @property
    def _ironic(self) -> Any:
        """The bare metal proxy of openstacksdk; None if the catalog lists no such service."""
        # The first use of a proxy is not safe in several threads.
        with self._lock:
            has_it = self._connection.has_service("baremetal")
            return self._connection.baremetal if has_it else None


def _is_busy(node: Node) -> bool:
    return bool(node.reservation or node.target_power_state)


def _power_of(node: Node) -> str:
    return "unknown" if _is_busy(node) else POWERS.get(node.power_state, "unknown")


def _reason(node: Node) -> str:
    """Return the reason why a node does not have the wanted power state, on one line."""
    return " ".join(str(node.last_error or f"its node is {node.power_state}").split())


def must_not_run(compute: Compute, host: str, what: str) -> None:
    """Raise ActionFailed with the names of the instances that run on a host or move to it.

    It is also raised if Nova cannot know them all: see :func:`_must_be_known`.
    """
    nova = compute.nova
    _must_be_known(compute, host, what)
    servers = compute.calls.read(lambda: list(nova.servers(all_projects=True, compute_host=host)))
    running = sorted(str(server.name) for server in servers or () if _runs(server))
    if running:
        raise ActionFailed(f"{what} was refused: {host} still runs {', '.join(shown(running))}")
    records = compute.calls.read(lambda: list(nova.migrations(host=host)))
    # A cell that does not answer is left out of both lists: it must have answered before and after.
    _must_be_known(compute, host, what)
    coming = {record.server_id for record in records or () if _comes(record, host)}
    # A record without an end may be left of a move that Nova broke off when it died.
    moved = [server for server in map(compute.server, coming) if server and task_of(server)]
    if moved:
        names = ", ".join(shown(sorted(str(server.name) for server in moved)))
        raise ActionFailed(f"{what} was refused: on the way to {host}: {names}")


def _must_be_known(compute: Compute, host: str, what: str) -> None:
    """Raise ActionFailed unless Nova has a compute service on a host, and its cell answers.

    Nova may have the host under another name.
    """
    services = compute.services(host)
    if not services:
        raise ActionFailed(f"{what} was refused: Nova has no host {host} to ask for its instances")
    if services[0].status == CELL_IS_DOWN:
        raise ActionFailed(
            f"{what} was refused: Nova cannot read the instances of {host}: its cell does not "
            "answer"
        )


def _runs(server: Server) -> bool:
    is_up = server.status in _RUNS or server.power_state in (RUNNING, _PAUSED)
    return is_up or task_of(server) is not None


def _comes(record: Migration, host: str) -> bool:
    return record.dest_compute == host and record.status not in _ENDED
