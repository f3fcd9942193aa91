"""What is configured of machines: plain values."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class SshSettings:
    """How nodes are reached; ``keys`` are files, and none means what ssh itself would try."""

    known_hosts: str = "~/.ssh/known_hosts"
    keys: tuple[str, ...] = ()
    connect_timeout_s: float = 10.0

    @property
    def known_hosts_path(self) -> str:
        """The file of host keys, whose name begins at the root."""
        return os.path.abspath(os.path.expanduser(self.known_hosts))

    @property
    def key_paths(self) -> tuple[str, ...]:
        """The files of keys, whose names begin at the root."""
        return tuple(os.path.abspath(os.path.expanduser(key)) for key in self.keys)


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationSettings:
    """How simulated nodes behave; see :mod:`applier.machines.simulated_nodes`."""

    speed: float = 1.0
    failures: tuple[str, ...] = ()
    seed: int = 0
    log: str | None = None
