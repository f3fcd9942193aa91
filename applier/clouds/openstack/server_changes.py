# SPDX-License-Identifier: Apache-2.0
"""Creates, starts, stops, shelves, unshelves and deletes servers of Nova."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from applier.clouds.openstack.calls import never_twice
from applier.clouds.openstack.compute import Compute
from applier.clouds.openstack.server_fields import Server, is_gone, task_of, view
from applier.clouds.openstack.state_waits import WaitStopped
from applier.contracts import Print, StopSignal, silent
from applier.errors import ActionFailed

_REFERENCE = re.compile(r"\$\{[^}]*\}")
#: Fields that are passed to Nova as they are.
_AS_THEY_ARE = (
    *("key_name", "metadata", "scheduler_hints", "block_device_mapping", "config_drive"),
    "block_device_mapping_v2",
)

#: Maps a wanted status, and the one before, to the call and its name in messages.
_CALLS = {
    ("SHUTOFF", "ACTIVE"): ("stop_server", "the stop"),
    ("ACTIVE", "SHUTOFF"): ("start_server", "the start"),
    ("ACTIVE", "SHELVED"): ("unshelve_server", "the unshelving"),
    ("SHELVED", "ACTIVE"): ("shelve_server", "the shelving"),
    ("SHELVED", "SHUTOFF"): ("shelve_server", "the shelving"),
}


class ServerChanges:
    """Creates and deletes servers, and sets their status.

    ``images`` is the image proxy of openstacksdk.
    """

    def __init__(self, compute: Compute, images: Any) -> None:
        self._compute, self._nova, self._images = compute, compute.nova, images

    def create(
        self, name: str, wanted: Mapping[str, Any], stop: StopSignal, output: Print = silent
    ) -> str:
        """Create a server, and wait until it is built; return its id.

        If there is a server of that name, wait for that one and create none. If the answer to the
        request is lost, look for a server of that name, because a second request may make another.
        """
        what = f"the creation of {name}"
        found = self.named(name)
        if found is None:
            arguments = self._arguments(what, wanted)
            made = self._compute.calls.change(
                what,
                never_twice(lambda: self._nova.create_server(name=name, **arguments)),
                stop,
                lambda: self.named(name) is not None,
            )
            found = made.id if made is not None else self.named(name)
        if found is None:
            raise ActionFailed(f"{what} failed: there is no instance of that name")
        server = self._compute.existing(found)
        self._compute.print_request(server, output)
        return self._built(server, what, stop)

    def named(self, name: str) -> str | None:
        """Return the id of the only server of that name, or None.

        Raises ActionFailed if there are several.
        """
        pattern = f"^{re.escape(name)}$"
        found = self._compute.calls.read(
            lambda: [s for s in self._nova.servers(name=pattern) if s.name == name]
        )
        if found and len(found) > 1:
            raise ActionFailed(f"{len(found)} instances are called {name}: name the uuid")
        return found[0].id if found else None

    def delete(self, server_id: str, stop: StopSignal, output: Print = silent) -> None:
        """Delete a server, and wait until it is gone; do nothing if there is none."""
        server = self._compute.server(server_id)
        if server is None:
            return
        what = f"the removal of {server.name}"
        self._compute.calls.change(
            what,
            lambda: self._nova.delete_server(server_id),
            stop,
            lambda: is_gone(self._compute.server(server_id)),
        )
        self._compute.print_request(server, output)

        def has_failed(now: Server) -> bool:
            return now.status == "ERROR" and task_of(now) is None

        try:
            left = self._compute.wait(server_id, has_failed, stop)
        except WaitStopped as stopped:
            raise ActionFailed(f"{what} was stopped; Nova goes on with it") from stopped
        if left is not None:
            raise ActionFailed(f"{what} failed: {self._compute.reason(left, 'it is in ERROR')}")

    def _built(self, server: Server, what: str, stop: StopSignal) -> str:
        try:
            built = self._compute.idle(server.id, stop)
        except WaitStopped as stopped:
            text = f"{what} was stopped; Nova goes on with it as {server.id}"
            raise ActionFailed(text) from stopped
        if built is None:
            raise ActionFailed(f"{what} failed: it was deleted meanwhile")
        if built.status == "ERROR":
            raise ActionFailed(f"{what} failed: {self._compute.reason(built, 'it is in ERROR')}")
        return str(built.id)

    def _arguments(self, what: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of ``create_server``; raises ActionFailed."""
        references = sorted(set(_REFERENCE.findall(str(wanted))))
        if references:
            text = "it refers to what only an orchestration knows: "
            raise ActionFailed(f"{what} was refused: {text}{', '.join(references)}")
        arguments = {key: wanted[key] for key in _AS_THEY_ARE if key in wanted}
        arguments["networks"] = wanted.get("networks", "auto")
        arguments["flavor_id"] = self._id(what, "flavor", wanted, self._nova.find_flavor)
        if wanted.get("image"):
            arguments["image_id"] = self._id(what, "image", wanted, self._images.find_image)
        if wanted.get("security_groups"):
            arguments["security_groups"] = [{"name": n} for n in wanted["security_groups"]]
        zones = wanted.get("availability_zone") or wanted.get("availability_zones")
        if zones:
            arguments["availability_zone"] = zones if isinstance(zones, str) else zones[0]
        if wanted.get("user_data"):
            data = str(wanted["user_data"]).encode()
            arguments["user_data"] = base64.b64encode(data).decode()
        return arguments

    def _id(self, what: str, kind: str, wanted: Mapping[str, Any], find: Any) -> str:
        name = wanted.get(kind)
        if name is None:
            raise ActionFailed(f"{what} was refused: its definition has no {kind}")
        found = self._compute.calls.read(lambda: find(name, ignore_missing=True))
        if found is None:
            raise ActionFailed(f"{what} was refused: there is no {kind} {name}")
        return str(found.id)

    def set_status(
        self, server_id: str, status: str, stop: StopSignal, output: Print = silent
    ) -> None:
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
            reached = self._compute.idle(server_id, stop)
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
        return lambda: getattr(self._nova, method)(server.id), f"{verb} of {server.name}"

    def _has_begun(self, before: Server) -> bool:
        now = self._compute.server(before.id)
        return now is None or now.task_state is not None or now.status != before.status
