# SPDX-License-Identifier: Apache-2.0
"""Waits for servers or volumes: all that are waited for are read by one call in each interval.

The threads that wait have no thread in common. Whoever finds what was read last too old reads
again, for all; the others find it new. What is asked for is what changed since the oldest change
that is known of a server that is waited for, by the clock of the cloud. So the answer is about the
servers that are waited for, however many the cloud has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from applier.backoff import delays_s
from applier.clouds.openstack.servers import Server, is_gone
from applier.contracts import StopSignal

#: The seconds between two looks at a server: the first, and the longest.
_FIRST_S, _LONGEST_S = 0.25, 2.0
#: For how many seconds an answer is new.
_INTERVAL_S = 0.5


class WaitStopped(Exception):
    """The waiting was stopped; ``server`` is what was known of the server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        super().__init__(server.name)


class Following:
    """The servers that operations of this process wait for.

    ``read`` returns one server by its id, or None; ``changed`` lists those that have changed since
    a time of the cloud, the deleted ones among them.
    """

    def __init__(
        self,
        read: Callable[[str], Server | None],
        changed: Callable[[str], Iterable[Server]],
    ) -> None:
        self._read, self._changed = read, changed
        self._lock = threading.Lock()
        self._known: dict[str, Server] = {}
        self._waiting: dict[str, int] = {}
        self._read_at = float("-inf")

    def wait(
        self, server_id: str, is_over: Callable[[Server], bool], stop: StopSignal
    ) -> Server | None:
        """Wait until ``is_over`` returns True for a server; return the server, None if it is gone.

        Raises Stopped, and what ``read`` and ``changed`` raise.
        """
        server = self._read(server_id)
        if is_gone(server) or is_over(server):
            return None if is_gone(server) else server
        with self._followed(server):
            for delay_s in delays_s(_FIRST_S, _LONGEST_S):
                if stop.wait(delay_s):
                    raise WaitStopped(server)
                server = self._newest(server_id)
                if is_gone(server) or is_over(server):
                    return None if is_gone(server) else server
        raise AssertionError

    @contextmanager
    def _followed(self, server: Server) -> Iterator[None]:
        with self._lock:
            self._known[server.id] = server
            self._waiting[server.id] = self._waiting.get(server.id, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting[server.id] -= 1
                if not self._waiting[server.id]:
                    del self._waiting[server.id], self._known[server.id]

    def _newest(self, server_id: str) -> Server | None:
        with self._lock:
            if time.monotonic() - self._read_at >= _INTERVAL_S:
                self._read_all()
            return self._known[server_id]

    def _read_all(self) -> None:
        known = (server for server in self._known.values() if server is not None)
        since = min(server.updated_at or server.created_at for server in known)
        for server in self._changed(since):
            if server.id in self._known:
                self._known[server.id] = server
        self._read_at = time.monotonic()
