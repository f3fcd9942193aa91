# SPDX-License-Identifier: Apache-2.0
"""The reads of Nova that operations share, the wait for a server, the reason of a failure.

And the compute services, which Nova enables and disables at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from keystoneauth1 import exceptions as keystone

from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.server_fields import Server, task_of
from applier.clouds.openstack.state_waits import Following
from applier.contracts import Print, StopSignal, silent
from applier.errors import ActionFailed

#: A migration record of Nova, as openstacksdk returns it.
Migration = Any
#: The status of a server or a service whose cell does not answer: Nova cannot read its database.
CELL_IS_DOWN = "UNKNOWN"


class Compute:
    """Reads of Nova, and its services; ``nova`` is the compute proxy of openstacksdk."""

    def __init__(self, nova: Any, calls: Calls) -> None:
        self.nova, self.calls = nova, calls
        #: See :meth:`applier.clouds.openstack.state_waits.Following.wait`.
        self.wait = Following(self.server, self._changed).wait

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
        return {"name": found.name, **room_of(found)}

    def services(self, host: str) -> list[Any]:
        """Return the compute service on a host, if there is one; its cell may not have answered."""
        read = partial(self.nova.services, binary="nova-compute", host=host)
        return self.calls.read(lambda: list(read())) or []

    def service(self, host: str) -> Mapping[str, Any] | None:
        """Return ``status, reason`` of the compute service on a host, None if there is none."""
        found = self._service(host)
        return found and {"status": found.status, "reason": found.disabled_reason}

    def set_service(
        self,
        host: str,
        status: str,
        reason: str | None,
        stop: StopSignal,
        output: Print = silent,  # noqa: ARG002
    ) -> None:
        """Enable or disable a compute service; Nova answers when it is done."""
        found = self._service(host)
        if found is None:
            raise ActionFailed(f"there is no compute service on {host}")
        if status == "enabled":
            change, what = partial(self.nova.enable_service, found), f"enabling {host}"
        else:
            change = partial(self.nova.disable_service, found, disabled_reason=reason)
            what = f"disabling {host}"
        self.calls.change(what, change, stop)

    def _service(self, host: str) -> Any:
        read = partial(self.nova.services, binary="nova-compute", host=host)
        found = self.calls.read(lambda: [answered(service, f"host {host}") for service in read()])
        return found[0] if found else None

    def idle(self, server_id: str, stop: StopSignal) -> Server | None:
        """Wait until a server has no task in Nova, as ``wait`` does."""
        return self.wait(server_id, lambda server: task_of(server) is None, stop)

    def settled(self, server: Server, stop: StopSignal) -> Server:
        """Wait until a server has no task in Nova; return the server as it is then.

        Raises ActionFailed if it was deleted, WaitStopped once ``stop`` is set.
        """
        if task_of(server) is None:
            return server
        found = self.idle(server.id, stop)
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


def room_of(flavor: Any) -> dict[str, Any]:
    """Return ``vcpus, ram_mb, disk_gb`` of a flavor."""
    return {"vcpus": flavor.vcpus, "ram_mb": flavor.ram, "disk_gb": flavor.disk}


def answered(found: Any, what: str) -> Any:
    """Return a server or a service of Nova; ``what`` names it in messages.

    Raises ConnectFailure, after which a call is repeated, if its cell does not answer: Nova returns
    no field but its id or host then.
    """
    if found.status == CELL_IS_DOWN:
        raise keystone.ConnectFailure(f"Nova cannot read {what}: its cell does not answer")
    return found
