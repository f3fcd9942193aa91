# SPDX-License-Identifier: Apache-2.0
"""The settings of SSH and of simulated nodes."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class SshSettings:
    """How nodes are reached over SSH; without ``keys`` (files) the defaults of ssh are tried.

    ``reconnect_timeout_s`` is how long a lost connection is tried again while a command runs.
    """

    known_hosts: str = "~/.ssh/known_hosts"
    keys: tuple[str, ...] = ()
    connect_timeout_s: float = 10.0
    reconnect_timeout_s: float = 300.0

    @property
    def known_hosts_path(self) -> str:
        """Return the absolute path of the file of host keys."""
        return os.path.abspath(os.path.expanduser(self.known_hosts))

    @property
    def key_paths(self) -> tuple[str, ...]:
        """Return the absolute paths of the private keys."""
        return tuple(os.path.abspath(os.path.expanduser(key)) for key in self.keys)


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationSettings:
    """How simulated nodes behave; see :mod:`applier.machines.simulated_nodes`."""

    speed: float = 1.0
    failures: tuple[str, ...] = ()
    seed: int = 0
    log: str | None = None
