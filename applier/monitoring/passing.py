# SPDX-License-Identifier: Apache-2.0
"""Passes the metrics of runs to the process of the API, in ``actionplan-applier --with-api``.

The parent of both processes listens at a socket in a folder of its own, so that only its user can
ask. The process that runs plans answers each connection with its metrics; a new one that replaces
a dead one has the same socket.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest

#: The most seconds that either side waits for the other.
LIMIT_S = 1.0


@contextmanager
def listening() -> Iterator[socket.socket]:
    """Yield a socket that listens; its folder is removed at the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="actionplan-"))
    try:
        with closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(str(folder / "metrics"))
            listener.listen()
            yield listener
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def answer(listener: socket.socket, registry: CollectorRegistry) -> None:
    """Answer whoever connects with the metrics of a registry, in a thread of its own."""

    def loop() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                if listener.fileno() < 0:
                    return  # it was closed
                continue
            # Who asked may have given up meanwhile.
            with closing(connection), suppress(OSError):
                connection.settimeout(LIMIT_S)
                connection.sendall(generate_latest(registry))

    threading.Thread(target=loop, name="metrics", daemon=True).start()


def asked(listener: socket.socket) -> bytes:
    """Return the metrics of the process that runs plans; ``actionplan_runs_up`` is 0 without it."""
    found = b""
    with closing(socket.socket(socket.AF_UNIX)) as connection, suppress(OSError):
        connection.settimeout(LIMIT_S)
        connection.connect(listener.getsockname())
        with connection.makefile("rb") as answered:
            found = answered.read()
    up = "1 if the process that runs plans answered in time, else 0."
    name = "actionplan_runs_up"
    head = f"# HELP {name} {up}\n# TYPE {name} gauge\n{name} {float(bool(found))}\n"
    return head.encode() + found
