# SPDX-License-Identifier: Apache-2.0
"""The reads of Nova that operations share, the wait for a server, the reason of a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keystoneauth1 import exceptions as keystone

from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.servers import Server, task_of
from applier.clouds.openstack.state_waits import Following
from applier.contracts import Print, StopSignal
from applier.errors import ActionFailed

#: A migration record of Nova, as openstacksdk returns it.
Migration = Any
#: The status of a server or a service whose cell does not answer: Nova cannot read its database.
CELL_IS_DOWN = "UNKNOWN"


class Compute:
    """Reads of Nova; ``nova`` is the compute proxy of openstacksdk."""

    def __init__(self, nova: Any, calls: Calls) -> None:
        self.nova, self.calls = nova, calls
        self._following = Following(self.server, self._changed)

    def server(self, server_id: str) -> Server | None:
        """Return a server, or None if there is none."""
        what = f"instance {server_id}"
        return self.calls.read(lambda: answered(self.nova.get_server(server_id), what))

    def existing(self, server_id: str) -> Server:
        """Return a server; raises ActionFailed if there is none."""
        server = self.server(server_id)
        if server is None:
            raise ActionFailed(f"there is no instance {server_id}")
        return server

    def flavor(self, flavor: str) -> dict[str, Any] | None:
        """Return ``name, vcpus, ram_mb, disk_gb`` of a flavor, by its name or id."""
        found = self.calls.read(lambda: self.nova.find_flavor(flavor))
        if found is None:
            return None
        room = {"vcpus": found.vcpus, "ram_mb": found.ram, "disk_gb": found.disk}
        return {"name": found.name, **room}

    def wait(
        self, server_id: str, is_over: Callable[[Server], bool], stop: StopSignal
    ) -> Server | None:
        """Wait until ``is_over`` returns True for a server; return it, or None if it is gone.

        Raises WaitStopped once ``stop`` is set.
        """
        return self._following.wait(server_id, is_over, stop)

    def settled(self, server: Server, stop: StopSignal) -> Server:
        """Wait until a server has no task in Nova; return the server as it is then.

        Raises ActionFailed if it was deleted, WaitStopped once ``stop`` is set.
        """
        if task_of(server) is None:
            return server
        found = self.wait(server.id, lambda s: task_of(s) is None, stop)
        if found is None:
            raise ActionFailed(f"{server.name} was deleted meanwhile")
        return found

    def migrations(self, server_id: str) -> list[Migration]:
        """Return the migration records of a server, the newest first."""
        found = self.calls.read(lambda: list(self.nova.migrations(server_id=server_id))) or []
        return sorted(found, key=lambda migration: int(migration.id), reverse=True)

    def print_request(self, server: Server, output: Print) -> None:
        """Print the request id of the last action on a server, as Nova lists them."""
        action = self._last_action(server.id)
        if action is not None:
            output(f"{action.action} of {server.name}: request {action.request_id}\n")

    def reason(self, server: Server, otherwise: str) -> str:
        """Return the reason that Nova recorded for a failure of a server, else ``otherwise``."""
        fault = getattr(server, "fault", None) or {}
        if fault.get("message"):
            return str(fault["message"])
        action = self._last_action(server.id)
        for event in (action.events or []) if action is not None else ():
            if event.result == "Error" and event.details:
                return str(event.details)
        if action is not None and action.message:
            return f"{otherwise} ({action.message})"
        return otherwise

    def _last_action(self, server_id: str) -> Any:
        def read() -> Any:
            newest = next(iter(self.nova.server_actions(server_id)), None)
            return newest and self.nova.get_server_action(newest.request_id, server_id)

        return self.calls.read(read)

    def _changed(self, since: str) -> list[Server]:
        found = self.calls.read(
            lambda: list(self.nova.servers(all_projects=True, changes_since=since))
        )
        return found or []


def answered(found: Any, what: str) -> Any:
    """Return a server or a service of Nova; ``what`` names it in messages.

    Raises ConnectFailure, after which a call is repeated, if its cell does not answer: Nova returns
    no field but its id or host then.
    """
    if found.status == CELL_IS_DOWN:
        raise keystone.ConnectFailure(f"Nova cannot read {what}: its cell does not answer")
    return found
