# SPDX-License-Identifier: Apache-2.0
"""A real Ironic on the loopback, and what tests do with its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import environments
from service_process import ServiceProcess


class PowerLab(ServiceProcess):
    """See ``lab/ironic_in_one_process.py``; ``nova`` is the URL of a Nova for its catalog."""

    def __init__(self, folder: Path, nova: str) -> None:
        super().__init__(environments.IRONIC, "ironic_in_one_process.py", folder, nova)
        self._hold = folder.with_suffix(".hold")

    @property
    def ironic(self) -> Any:
        """The bare metal proxy of openstacksdk."""
        return self.connection.baremetal

    def reset(self) -> None:
        """Remove all nodes."""
        for node in self.ironic.nodes():
            self.until(lambda name=node.id: self.node(name).reservation is None, "an unlocked node")
            self.ironic.delete_node(node)

    def create(self, name: str, power: str = "power on", **extra: str) -> None:
        """Create a node that is on, or has another power."""
        made = self.ironic.create_node(name=name, driver="fake-hardware")
        self.ironic.set_node_power_state(made, power)
        self.until(lambda: self.power(name) == (power, None), f"{name} {power}")
        told = [{"op": "add", "path": f"/extra/{key}", "value": extra[key]} for key in extra]
        if told:
            self.ironic.patch_node(made, told)

    def node(self, name: str) -> Any:
        """Return a node as Ironic shows it now."""
        return self.ironic.get_node(name)

    def power(self, name: str) -> tuple[str, str | None]:
        """Return the power of a node, and the one that it is about to have."""
        found = self.node(name)
        return found.power_state, found.target_power_state

    def told(self, name: str) -> list[str]:
        """List what the computer of a node was told, after its creation."""
        targets: list[str] = self.node(name).driver_internal_info["lab_targets"]
        return targets[1:]

    @contextmanager
    def held(self) -> Iterator[dict[str, str]]:
        """Let no node with this in its ``extra`` change its power before the end of the block."""
        self._hold.touch()
        try:
            yield {"lab_hold": str(self._hold)}
        finally:
            self._hold.unlink()
