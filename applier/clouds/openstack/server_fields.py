# SPDX-License-Identifier: Apache-2.0
"""Reads the fields of a server, in the terms of :class:`applier.contracts.clouds.Cloud`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: A server as openstacksdk returns it.
Server = Any

#: The status of a server that was moved or resized, and waits to be confirmed.
WAITS_FOR_CONFIRMATION = "VERIFY_RESIZE"
#: The statuses that count as tasks: Nova replaces them by another one without a request.
_TASKS = {"BUILD", "MIGRATING", "RESIZE", "REVERT_RESIZE", "REBUILD", "REBOOT", "HARD_REBOOT"}
_STATUSES = {"SHELVED_OFFLOADED": "SHELVED"}
#: The power state of a server that runs.
RUNNING = 1


def task_of(server: Server) -> str | None:
    """Return the task of Nova on a server, in Nova's words, or None.

    A server that waits for the confirmation of a move has none.
    """
    if server.task_state:
        return str(server.task_state)
    return server.status.lower() if server.status in _TASKS else None


def view(server: Server) -> dict[str, Any]:
    """Return ``name, host, flavor, status, task`` of a server."""
    waits = server.status == WAITS_FOR_CONFIRMATION
    status = _STATUSES.get(server.status, server.status)
    if waits:
        # The status that the confirmation will give to it.
        status = "ACTIVE" if server.power_state == RUNNING else "SHUTOFF"
    return {
        "name": server.name,
        "host": server.compute_host,
        "flavor": flavor_of(server),
        "status": status,
        "task": "verify_resize" if waits else task_of(server),
    }


def flavor_of(server: Server) -> str | None:
    """Return the name of the flavor of a server, or its id where Nova returns no name."""
    flavor: Mapping[str, Any] = server.flavor or {}
    return flavor.get("original_name") or flavor.get("name") or flavor.get("id")


def is_gone(server: Server | None) -> bool:
    """Return whether a server does not exist any more."""
    return server is None or server.status in ("DELETED", "SOFT_DELETED")
