# SPDX-License-Identifier: Apache-2.0
"""A program of ``lab`` that runs services of OpenStack, and a connection to them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openstack
from environments import Environment
from guarded_process import GuardedProcess
from ports import free_block
from watcher_lab import PROGRAMS

LAB = Path(__file__).parent / "lab"


class ServiceProcess:
    """A context manager: the program answers inside, and is killed at the end.

    It is called with a folder, which is made and in which it leaves ``clouds.yaml``, with the first
    of two ports, ``port``, and with ``words``.
    """

    NAME = "lab"

    def __init__(self, environment: Environment, program: str, folder: Path, *words: str) -> None:
        self.folder, self.clouds_yaml = folder, folder / "clouds.yaml"
        self.port = free_block(2)
        arguments = (str(folder), str(self.port), *words)
        self._command = [str(environment.python), str(LAB / program), *arguments]

    def __enter__(self) -> ServiceProcess:
        self.folder.mkdir(exist_ok=True)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()
        self.kill()

    def start(self) -> None:
        """Start it, where it was killed before on what it left; it answers when this returns."""
        output = self.folder.with_suffix(".out")
        output.unlink(missing_ok=True)
        path = {"PYTHONPATH": str(PROGRAMS)}
        self._process = GuardedProcess(self._command, output, {**os.environ, **path})
        try:
            self.until(lambda: "READY" in output.read_text(errors="replace"), "READY")
            config = openstack.config.OpenStackConfig(config_files=[str(self.clouds_yaml)])
            self.connection: Any = openstack.connection.Connection(config=config.get_one(self.NAME))
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """Kill it with signal 9."""
        self._process.kill()

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Return when something holds."""
        self._process.wait_until(what, holds)
