# SPDX-License-Identifier: Apache-2.0
"""However many servers are waited for, they are read by one list in each interval."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from applier.clouds.openstack import state_waits
from applier.clouds.openstack.state_waits import Following, WaitStopped


class Nova:
    """Servers by id; each is settled after it was in a number of lists."""

    def __init__(self, count: int, lists: int) -> None:
        self.left = {f"s{i}": lists for i in range(count)}
        self.reads, self.since = 0, []
        self._lock = threading.Lock()

    def server(self, server_id: str) -> SimpleNamespace:
        left = self.left[server_id]
        status = "ACTIVE" if left == 0 else "MIGRATING"
        return SimpleNamespace(
            id=server_id,
            name=server_id,
            status=status,
            updated_at=f"2026-01-01T00:00:0{server_id[1]}Z",
        )

    def read(self, server_id: str) -> SimpleNamespace | None:
        with self._lock:
            self.reads += 1
        return self.server(server_id) if server_id in self.left else None

    def changed(self, since: str) -> list[SimpleNamespace]:
        with self._lock:
            self.since.append(since)
            for server_id, left in self.left.items():
                self.left[server_id] = max(0, left - 1)
            return [self.server(server_id) for server_id in self.left]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again after a moment."""
    for name in ("_FIRST_S", "_LONGEST_S"):
        monkeypatch.setattr(state_waits, name, 0.01)
    monkeypatch.setattr(state_waits, "_INTERVAL_S", 0.05)


def is_settled(server: SimpleNamespace) -> bool:
    return server.status == "ACTIVE"


def test_all_that_wait_share_the_lists():
    nova = Nova(8, lists=5)
    followed, found = Following(nova.read, nova.changed), []
    threads = [
        threading.Thread(
            target=lambda i=i: found.append(followed.wait(f"s{i}", is_settled, threading.Event()))
        )
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(server.id for server in found) == [f"s{i}" for i in range(8)]
    assert nova.reads == 8
    assert len(nova.since) <= 6
    assert nova.since[-1] >= "2026-01-01T00:00:00Z"


def test_one_that_is_settled_or_gone_at_once_is_not_waited_for():
    nova = Nova(1, lists=0)
    followed = Following(nova.read, nova.changed)
    assert followed.wait("s0", is_settled, threading.Event()).id == "s0"
    assert followed.wait("s9", is_settled, threading.Event()) is None
    assert nova.since == []


def test_one_that_is_deleted_meanwhile_is_gone():
    nova = Nova(1, lists=9)
    deleted = SimpleNamespace(id="s0", status="DELETED", updated_at="2026-01-01T00:00:09Z")
    followed = Following(nova.read, lambda _: [deleted])
    assert followed.wait("s0", is_settled, threading.Event()) is None


def test_a_stop_ends_the_waiting_and_says_what_was_known():
    stop = threading.Event()
    stop.set()
    nova = Nova(1, lists=9)
    followed = Following(nova.read, nova.changed)
    with pytest.raises(WaitStopped) as stopped:
        followed.wait("s0", is_settled, stop)
    assert stopped.value.server.status == "MIGRATING"
