# SPDX-License-Identifier: Apache-2.0
"""The machines on which tasks run: this one, one reached over SSH, or a simulated one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from applier.contracts import Machine, StopSignal
from applier.errors import ActionFailed
from applier.machines import address as addresses
from applier.machines.local import Local
from applier.machines.settings import SimulationSettings, SshSettings
from applier.machines.simulated_nodes import Simulation
from planner.states import Outcome

if TYPE_CHECKING:
    from applier.machines.connections import Connections


class OpenMachines:
    """The machines of one run; a connection is made when it is first needed.

    Raises ConfigurationError for invalid settings. :meth:`close` closes the connections.
    """

    def __init__(
        self, ssh: SshSettings | None = None, simulation: SimulationSettings | None = None
    ) -> None:
        self._ssh = ssh or SshSettings()
        self._simulation = Simulation(simulation or SimulationSettings())
        self._lock = threading.Lock()
        self._connections: Connections | None = None

    def machine(self, address: str | None, stop: StopSignal) -> Machine:
        """Return the machine at an address, or this one for None. Raises ActionFailed."""
        if address is None:
            return Local(stop)
        try:
            known = addresses.parse(address)
        except ValueError as reason:
            raise ActionFailed(str(reason)) from reason
        connections = self._opened()
        from applier.machines.remote import Remote

        return Remote(connections, self._ssh, known, stop)

    def simulate(self, node: str, task: str, seconds: float, stop: StopSignal) -> Outcome:
        """Wait ``seconds``. Raises ActionFailed if the task is configured to fail or is stopped."""
        return self._simulation.run(node, task, seconds, stop)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            if self._connections is not None:
                self._connections.close()
                self._connections = None

    def _opened(self) -> Connections:
        with self._lock:
            if self._connections is None:
                try:
                    # asyncssh takes as long to import as the rest of the applier.
                    from applier.machines.connections import Connections
                except ImportError as reason:
                    raise ActionFailed(
                        "nodes are reached over SSH with the extra 'ssh': "
                        f"pip install 'actionplan[ssh]' ({reason})"
                    ) from reason
                self._connections = Connections(self._ssh)
            return self._connections
