# SPDX-License-Identifier: Apache-2.0
"""Waits for servers or volumes: one call in each interval reads all that are waited for.

No extra thread reads. A waiting thread that finds the last answer older than the interval makes the
call, for all waiting threads; the others use its answer. The call lists what has changed since the
oldest time of a change, by the clock of the cloud, among the servers that are waited for. So its
answer is short, however many servers the cloud has. But it lacks volumes that were deleted, and
changes by a host whose clock was set back: so each object is also read by itself now and then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from applier.backoff import delays_s
from applier.clouds.openstack.server_fields import Server, is_gone
from applier.contracts import StopSignal

#: The seconds between two checks of a server: the first, and the longest.
_FIRST_S, _LONGEST_S = 0.25, 2.0
#: Seconds for which an answer is used before the next call.
_INTERVAL_S = 0.5
#: Seconds after which a server that is waited for is read by itself.
_ALONE_S = 60.0


class WaitStopped(Exception):
    """A stop signal ended a wait; ``server`` is the server (or volume) as it was read last."""

    def __init__(self, server: Server) -> None:
        self.server = server
        super().__init__(server.name)


class Following:
    """The servers, or the volumes, that operations of this process wait for.

    ``read`` returns one server by its id, or None. ``changed`` lists the servers that have changed
    since a time by the clock of the cloud, deleted ones among them if the cloud lists these.
    """

    def __init__(
        self,
        read: Callable[[str], Server | None],
        changed: Callable[[str], Iterable[Server]],
    ) -> None:
        self._read, self._changed = read, changed
        # The second is held while the list is read, which may take long.
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._known: dict[str, Server] = {}
        self._waiting: dict[str, int] = {}
        self._read_at = self._failed_at = float("-inf")
        self._failure: Exception | None = None

    def wait(
        self, server_id: str, is_over: Callable[[Server], bool], stop: StopSignal
    ) -> Server | None:
        """Wait until ``is_over`` returns True for a server; return it, or None if it is gone.

        Raises WaitStopped once ``stop`` is set, and any error of ``read`` and ``changed``.
        """
        server, read_at = self._read(server_id), time.monotonic()
        if is_gone(server) or is_over(server):
            return None if is_gone(server) else server
        with self._followed(server):
            for delay_s in delays_s(_FIRST_S, _LONGEST_S):
                if stop.wait(delay_s):
                    raise WaitStopped(server)
                if time.monotonic() - read_at < _ALONE_S:
                    server = self._listed(server, stop)
                else:
                    server, read_at = self._read(server_id), time.monotonic()
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

    def _listed(self, server: Server, stop: StopSignal) -> Server:
        """Return a server as it was in the last list; read a new list if that one is too old."""
        began = time.monotonic()
        while not self._reading.acquire(timeout=_INTERVAL_S):
            if stop.is_set():
                raise WaitStopped(server)
        try:
            if self._failure is not None and self._failed_at > began:
                raise self._failure
            if time.monotonic() - self._read_at >= _INTERVAL_S:
                self._read_all()
        finally:
            self._reading.release()
        with self._lock:
            return self._known[server.id]

    def _read_all(self) -> None:
        with self._lock:
            known = dict(self._known)
        since = min(server.updated_at or server.created_at for server in known.values())
        try:
            changed = self._changed(since)
        except Exception as failure:  # the threads that wait for this list raise it as well
            self._failed_at, self._failure = time.monotonic(), failure
            raise
        with self._lock:
            for server in changed:
                # A thread that has begun to wait meanwhile may know a newer state than the list.
                if server.id in known and self._known.get(server.id) is known[server.id]:
                    self._known[server.id] = server
        self._read_at = time.monotonic()
