# SPDX-License-Identifier: Apache-2.0
"""Switches hosts on and off by Ironic, whose node of a host must have the name of the host.

Ironic locks a node before it answers a request, and until the work is done. So the work is over
when the node has neither a lock (``reservation``) nor a ``target_power_state``. If its power state
is not the wanted one then, its ``last_error`` is the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from openstack import exceptions

from applier.backoff import delays_s
from applier.clouds.openstack import occupants
from applier.clouds.openstack.compute import Compute
from applier.contracts import Print, StopSignal
from applier.errors import ActionFailed

#: A node of Ironic, as openstacksdk returns it.
Node = Any

_POWERS = {"power on": "on", "power off": "off"}
_SOFT = "soft power off"
#: The first version of Ironic's API with a soft power-off, and a time-out for it.
_SOFT_SINCE = "1.27"
#: The seconds between two reads of a node: the first, and the longest.
_FIRST_S, _LONGEST_S = 0.25, 4.0


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
        nova = self._compute.nova
        found = self._compute.calls.read(
            lambda: list(nova.services(binary="nova-compute", host=host))
        )
        return {"power": "on" if found[0].state == "up" else "unknown"} if found else None

    def set(self, host: str, power: str, stop: StopSignal, output: Print) -> None:
        """Switch a host on or off, and wait until it is; do nothing if it is so already.

        Other work of Ironic on the node is waited for first. A hard power-off follows a soft one
        that was refused or has failed. Raises ActionFailed also while instances run on a host that
        is to be switched off.
        """
        what = f"switching {power} {host}"
        if power not in _POWERS.values():
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
                occupants.must_not_run(self._compute, host, what)
            self._begin(node, what, target, stop, output)
            node = self._settled(node, what, stop)
            if target == _SOFT and _power_of(node) != power:
                output(f"{what}: {_reason(node)}\n")
        if _power_of(node) != power:
            raise ActionFailed(f"{what} failed: {_reason(node)}")

    def _begin(self, node: Node, what: str, target: str, stop: StopSignal, output: Print) -> None:
        """Request a power state; a refusal of a soft power-off is printed and not raised."""
        if stop.is_set():
            raise ActionFailed(f"{what} was stopped before it began")
        body: dict[str, Any] = {"target": target}
        if target == _SOFT:
            body["timeout"] = max(1, round(self._soft_s))

        def request() -> str | None:
            response = self._ironic.put(
                f"/nodes/{node.id}/states/power", json=body, microversion=_SOFT_SINCE
            )
            exceptions.raise_from_response(response)
            name: str | None = response.headers.get("x-openstack-request-id")
            return name

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
    return "unknown" if _is_busy(node) else _POWERS.get(node.power_state, "unknown")


def _reason(node: Node) -> str:
    """Return the reason why a node does not have the wanted power state, on one line."""
    return " ".join(str(node.last_error or f"its node is {node.power_state}").split())
