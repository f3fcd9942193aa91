# SPDX-License-Identifier: Apache-2.0
"""Ports of the loopback for services that listen later, and again after they were killed."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack


def free_block(count: int) -> int:
    """Return the first of so many ports in a row, which stay kept until this process ends.

    A kept port is bound and does not listen. So connections to it are refused, a service that binds
    it with SO_REUSEADDR gets it, and this function, in whatever process, returns it to nobody else.
    The ports lie below those that the system gives to connections.
    """
    while True:
        first = random.randrange(20_000, 32_000)
        with ExitStack() as found:
            try:
                kept = [found.enter_context(socket.socket()) for _ in range(count)]
                for port, each in enumerate(kept, first):
                    # Without the option: it fails where somebody listens, and where it is kept.
                    each.bind(("127.0.0.1", port))
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            except OSError:
                continue
            for each in kept:
                each.detach()
            return first
