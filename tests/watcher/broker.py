# SPDX-License-Identifier: Apache-2.0
"""A RabbitMQ of our own on the loopback, so that no test disturbs the one of the machine."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from guarded_process import GuardedProcess
from ports import free_block
from programs import find

#: What Debian's rabbitmq-server runs as the user rabbitmq; this one runs as whoever asks.
_UNWRAPPED = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class Broker:
    """One RabbitMQ, with a port mapper of its own; ``url`` is for oslo.messaging."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._port = free_block(3)
        mapper, distribution = self._port + 1, self._port + 2
        self._processes: list[GuardedProcess] = []
        self._mapper = mapper
        self.url = f"rabbit://guest:guest@127.0.0.1:{self._port}//"
        self._environment = {
            "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin",
            "HOME": str(folder),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(mapper),
            "RABBITMQ_NODENAME": "lab@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "database"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def start(self) -> None:
        """Start it with what it has on its disk; it may not listen yet when this returns."""
        program = _UNWRAPPED if _UNWRAPPED.exists() else find("rabbitmq-server")
        mapper = ["epmd", "-address", "127.0.0.1", "-port", str(self._mapper)]
        for command, name in ((mapper, "epmd.out"), ([str(program)], "rabbitmq.out")):
            process = GuardedProcess(command, self._folder / name, self._environment)
            self._processes.append(process)

    def wait(self) -> None:
        """Return when it listens."""
        self._processes[-1].wait_until("listening broker", self._listens)

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
            return True
        return False

    def kill(self) -> None:
        """Let it be gone, with its connections."""
        while self._processes:
            self._processes.pop().kill()
