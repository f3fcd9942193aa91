# SPDX-License-Identifier: Apache-2.0
"""A real Nova and Placement in one process on the loopback, and what tests do with its servers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import environments
import openstack
from guarded_process import GuardedProcess
from ports import free_block
from watcher_lab import PROGRAMS

_FLAVOR, _IMAGE = "m1.small", "cirros"


class NovaLab:
    """Hosts are cmp1, cmp2, ...; a context manager: the process is killed at its end.

    ``environment`` adds variables to that of the process; see ``lab_hypervisor``.
    """

    NAME = "lab"

    def __init__(self, folder: Path, computes: int, **environment: str) -> None:
        self.clouds_yaml = folder / "clouds.yaml"
        self._folder, self._computes, self._environment = folder, computes, environment
        self._port = free_block(7)

    def __enter__(self) -> NovaLab:
        program = PROGRAMS / "nova_in_one_process.py"
        nothing = f"http://127.0.0.1:{self._port + 6}"
        words = (str(self._folder), str(self._port), str(self._computes), nothing)
        output = self._folder.with_suffix(".out")
        self._process = GuardedProcess(
            [environments.NOVA.python, program, *words], output, {**os.environ, **self._environment}
        )
        try:
            self._process.wait_until("READY", lambda: "READY" in self._process.whole_output())
            config = openstack.config.OpenStackConfig(config_files=[str(self.clouds_yaml)])
            self.connection = openstack.connection.Connection(config=config.get_one(self.NAME))
        except BaseException:
            self._process.kill()
            raise
        self.nova = self.connection.compute
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        self._process.kill()

    def kill(self) -> None:
        """Kill Nova, and all that answers for it, with signal 9."""
        self._process.kill()

    def requests(self) -> list[str]:
        """List method and path of each request that Nova has answered so far."""
        log = (self._folder / "nova.log").read_text(encoding="utf-8")
        lines = (line for line in log.splitlines() if "nova.api.openstack.requestlog" in line)
        return [line.split('"')[1] for line in lines]

    def reset(self) -> None:
        """Delete all servers, and enable all hosts."""
        for server in self.nova.servers(all_projects=True):
            self.nova.reset_server_state(server, "error")
            self.nova.delete_server(server)
        self.until(lambda: not list(self.nova.servers(all_projects=True)), "all servers deleted")
        for service in self.nova.services(binary="nova-compute"):
            if service.status != "enabled":
                self.nova.enable_service(service)

    def boot(
        self, name: str, host: str | None = None, group: str | None = None, **metadata: str
    ) -> str:
        """Boot a server, on a host or wherever it fits; return its id when it is ACTIVE.

        ``group`` is the id of its server group.
        """
        made = self.nova.create_server(
            name=name,
            flavor_id=self.nova.find_flavor(_FLAVOR).id,
            image_id=self.connection.image.find_image(_IMAGE).id,
            networks="none",
            metadata=metadata,
            **({"host": host} if host else {}),
            **({"scheduler_hints": {"group": group}} if group else {}),
        )
        self.until(lambda: self.server(made.id).status == "ACTIVE", f"{name} ACTIVE")
        return str(made.id)

    def mark(self, server_id: str, **metadata: str) -> None:
        """Set metadata that the hypervisor of the lab knows."""
        self.nova.set_server_metadata(server_id, **metadata)

    def server(self, server_id: str) -> Any:
        """Return a server as Nova shows it."""
        return self.nova.get_server(server_id)

    def moves(self, server_id: str) -> list[tuple[str, str, str]]:
        """Return type, destination and status of each migration record, the oldest first."""
        records = sorted(self.nova.migrations(server_id=server_id), key=lambda m: m.id)
        return [(m.migration_type, m.dest_compute, m.status) for m in records]

    def is_moving(self, server_id: str) -> bool:
        """Return whether a live migration of a server is running, and can be cancelled."""
        return any(m.status == "running" for m in self.nova.server_migrations(server_id))

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Return when something holds."""
        self._process.wait_until(what, holds)
