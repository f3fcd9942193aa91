# SPDX-License-Identifier: Apache-2.0
"""What Nova tells of a server, in the words of :class:`applier.contracts.clouds.Cloud`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: A server as openstacksdk returns it.
Server = Any

#: The status of a server that was moved or resized, and waits to be confirmed.
WAITS_FOR_CONFIRMATION = "VERIFY_RESIZE"
#: A status that is a task: it is followed by another without being told to.
_TASKS = {"BUILD", "MIGRATING", "RESIZE", "REVERT_RESIZE", "REBUILD", "REBOOT", "HARD_REBOOT"}
_STATUSES = {"SHELVED_OFFLOADED": "SHELVED"}
#: What a server that waits for its confirmation becomes, by its power state (1: it runs).
_CONFIRMED = {1: "ACTIVE"}


def task_of(server: Server) -> str | None:
    """Return what Nova is doing with a server, or None if the server is settled.

    One that waits for its confirmation is settled for Nova.
    """
    if server.task_state:
        return str(server.task_state)
    return server.status.lower() if server.status in _TASKS else None


def view(server: Server) -> dict[str, Any]:
    """Return ``name, host, flavor, status, task`` of a server."""
    waits = server.status == WAITS_FOR_CONFIRMATION
    status = _STATUSES.get(server.status, server.status)
    if waits:
        status = _CONFIRMED.get(server.power_state, "SHUTOFF")
    return {
        "name": server.name,
        "host": server.compute_host,
        "flavor": flavor_of(server),
        "status": status,
        "task": "verify_resize" if waits else task_of(server),
    }


def flavor_of(server: Server) -> str | None:
    """Return the name of a server's flavor."""
    flavor: Mapping[str, Any] = server.flavor or {}
    return flavor.get("original_name") or flavor.get("name") or flavor.get("id")


def is_gone(server: Server | None) -> bool:
    """Return whether a server does not exist any more."""
    return server is None or server.status in ("DELETED", "SOFT_DELETED")
