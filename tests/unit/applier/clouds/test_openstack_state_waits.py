# SPDX-License-Identifier: Apache-2.0
"""However many servers are waited for, they are read by one list in each interval."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import Future
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


class InLine(threading.Event):
    """A stop signal; a thread looks at it while another reads the list, which ``line`` is told."""

    def __init__(self, line: queue.Queue[str], name: str) -> None:
        super().__init__()
        self._line, self._name = line, name

    def is_set(self) -> bool:
        if self._name:
            self._line.put(self._name)
            self._name = ""
        return super().is_set()


def waits_for(followed: Following, server_id: str, stop: threading.Event) -> Future:
    future: Future = Future()

    def work() -> None:
        try:
            future.set_result(followed.wait(server_id, is_settled, stop))
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return future


def test_one_that_no_list_shows_any_more_is_gone(monkeypatch):
    """As a volume: Cinder lists no deleted ones."""
    monkeypatch.setattr(state_waits, "_ALONE_S", 0.05)
    nova = Nova(1, lists=9)

    def changed(_since: str) -> list[SimpleNamespace]:
        nova.left.clear()
        return []

    waiting = waits_for(Following(nova.read, changed), "s0", threading.Event())
    assert waiting.result(timeout=120) is None


def test_a_change_by_a_host_whose_clock_was_set_back_is_seen(monkeypatch):
    monkeypatch.setattr(state_waits, "_ALONE_S", 0.05)
    nova = Nova(1, lists=1)

    def changed(since: str) -> list[SimpleNamespace]:
        nova.changed(since)
        return []

    waiting = waits_for(Following(nova.read, changed), "s0", threading.Event())
    assert waiting.result(timeout=120).status == "ACTIVE"


def test_a_cloud_that_is_away_is_noticed_by_all_that_wait_at_once():
    nova, line, goes_on = Nova(8, lists=9), queue.Queue(), threading.Event()
    asked = []

    def changed(since: str) -> list[SimpleNamespace]:
        asked.append(since)
        goes_on.wait(120)
        raise ConnectionError("away")

    followed = Following(nova.read, changed)
    waiting = [waits_for(followed, f"s{i}", InLine(line, f"s{i}")) for i in range(8)]
    for _ in range(7):
        line.get(timeout=120)
    goes_on.set()
    for each in waiting:
        with pytest.raises(ConnectionError, match="away"):
            each.result(timeout=120)
    assert len(asked) == 1


def test_a_stop_reaches_one_that_waits_while_another_reads_the_list():
    nova, reads, answers = Nova(2, lists=9), threading.Event(), threading.Event()

    def changed(since: str) -> list[SimpleNamespace]:
        reads.set()
        answers.wait(120)
        return nova.changed(since)

    followed, stop = Following(nova.read, changed), threading.Event()
    first = waits_for(followed, "s0", threading.Event())
    assert reads.wait(120)
    second = waits_for(followed, "s1", stop)
    stop.set()
    with pytest.raises(WaitStopped):
        second.result(timeout=120)
    answers.set()
    assert first.result(timeout=120).status == "ACTIVE"


def test_a_list_that_was_requested_before_a_change_does_not_hide_it():
    """A server is idle, a list is requested, a task begins and is waited for, the list arrives."""
    nova, asked, answers = Nova(2, lists=9), threading.Event(), threading.Event()
    nova.left["s1"] = 0

    def changed(since: str) -> list[SimpleNamespace]:
        found = nova.changed(since)
        asked.set()
        answers.wait(120)
        return found

    followed, line = Following(nova.read, changed), queue.Queue()
    first = waits_for(followed, "s0", threading.Event())
    assert asked.wait(120)
    nova.left["s1"] = 2
    second = waits_for(followed, "s1", InLine(line, "s1"))
    line.get(timeout=120)
    answers.set()
    assert second.result(timeout=120).status == "ACTIVE"
    assert nova.left["s1"] == 0
    assert first.result(timeout=120).status == "ACTIVE"
