# SPDX-License-Identifier: Apache-2.0
"""Starts, stops, shelves and unshelves servers of Nova."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from applier.clouds.openstack.compute import Compute
from applier.clouds.openstack.servers import Server, task_of, view
from applier.clouds.openstack.state_waits import WaitStopped
from applier.contracts import Print, StopSignal
from applier.errors import ActionFailed

#: Maps a wanted status, and the one before, to the call and its name in messages.
_CALLS = {
    ("SHUTOFF", "ACTIVE"): ("stop_server", "the stop"),
    ("ACTIVE", "SHUTOFF"): ("start_server", "the start"),
    ("ACTIVE", "SHELVED"): ("unshelve_server", "the unshelving"),
    ("SHELVED", "ACTIVE"): ("shelve_server", "the shelving"),
    ("SHELVED", "SHUTOFF"): ("shelve_server", "the shelving"),
}


class Statuses:
    """Sets the status of servers."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute

    def set(self, server_id: str, status: str, stop: StopSignal, output: Print) -> None:
        """Start, stop, shelve or unshelve a server, and wait until it has the status.

        Waits first for a task that runs already. Does nothing if the server has the status.
        """
        server = self._compute.existing(server_id)
        try:
            server = self._compute.settled(server, stop)
            call, what = self._call(server, status)
            if call is None:
                return
            self._compute.calls.change(what, call, stop, lambda: self._has_begun(server))
            self._compute.print_request(server, output)
            reached = self._compute.wait(server_id, lambda s: task_of(s) is None, stop)
        except WaitStopped as stopped:
            task = task_of(stopped.server)
            goes_on = f"; Nova goes on with its {task}" if task else ""
            raise ActionFailed(f"the change of {server.name} was stopped{goes_on}") from stopped
        if reached is None:
            raise ActionFailed(f"{what} failed: {server.name} was deleted meanwhile")
        now = view(reached)["status"]
        if now != status:
            reason = self._compute.reason(reached, f"{server.name} is {now}")
            raise ActionFailed(f"{what} failed: {reason}")

    def _call(self, server: Server, status: str) -> tuple[Callable[[], Any] | None, str]:
        now = view(server)["status"]
        if now == status:
            return None, ""
        if (status, now) not in _CALLS:
            raise ActionFailed(f"{server.name} is {now} and cannot become {status}")
        method, verb = _CALLS[status, now]
        return lambda: getattr(self._compute.nova, method)(server.id), f"{verb} of {server.name}"

    def _has_begun(self, before: Server) -> bool:
        now = self._compute.server(before.id)
        return now is None or now.task_state is not None or now.status != before.status
