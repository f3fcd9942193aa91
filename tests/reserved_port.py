# SPDX-License-Identifier: Apache-2.0
"""A port that nobody else is given, however often the program of a test listens there anew."""

from __future__ import annotations

import os
import socket
import weakref


class ReservedPort:
    """Keeps a port until the end of its life, or until it is closed.

    A socket is bound to it and does not listen: connections are refused, and the kernel gives the
    port to nobody who asks for any. A server that sets SO_REUSEADDR, as servers do, can listen.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        kept = socket.socket()
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind((host, 0))
        self.port = int(kept.getsockname()[1])
        self.close = weakref.finalize(self, os.close, kept.detach())
