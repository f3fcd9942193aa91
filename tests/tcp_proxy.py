# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy before a server, by default on the loopback, which can be away and can hang."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from reserved_port import ReservedPort


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


class Proxy:
    """Forwards connections to a server; ``port`` stays the same until ``end``."""

    def __init__(self, host: str, port: int, here: str = "127.0.0.1") -> None:
        self._target, self._here = (host, port), here
        self._open: set[socket.socket] = set()
        self._opening = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self._server: _Server | None = None
        # Nobody else has the port while this is away.
        self._kept = ReservedPort(here)
        self.port = self._kept.port
        self.come_back()

    def come_back(self) -> None:
        """Accept connections again, and forward what was held up."""
        self._flows.set()
        if self._server is None:
            proxy = self

            class Handler(socketserver.BaseRequestHandler):
                def handle(self) -> None:
                    proxy._handle(self.request, self.server)

            self._server = _Server((self._here, self.port), Handler)
            self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
            self._thread.start()

    def go_away(self) -> None:
        """Close all connections and accept none."""
        self._flows.set()
        if self._server is not None:
            self._server.shutdown()
            self._thread.join()
            with self._opening:
                self._server.server_close()
                self._server = None
                for each in self._open:
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Go away for good."""
        self.go_away()
        self._kept.close()

    def hang(self) -> None:
        """Forward nothing more, and keep the connections."""
        self._flows.clear()

    def _handle(self, near: socket.socket, server: socketserver.BaseServer) -> None:
        with suppress(OSError), socket.create_connection(self._target) as far:
            with self._opening:
                if server is not self._server:
                    return  # it has gone away meanwhile
                self._open |= {near, far}
            back = threading.Thread(target=self._forward, args=(far, near))
            back.start()
            self._forward(near, far)
            back.join()
            with self._opening:
                self._open -= {near, far}

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxy(host: str, port: int) -> Iterator[Proxy]:
    """Run a proxy in a block."""
    running = Proxy(host, port)
    try:
        yield running
    finally:
        running.end()
