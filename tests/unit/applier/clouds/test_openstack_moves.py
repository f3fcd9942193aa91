# SPDX-License-Identifier: Apache-2.0
"""Moves between two changes that Nova makes one after another: the task, the record, its status.

A real Nova makes them within milliseconds, so it is scripted here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from applier.clouds.openstack import moves, state_waits
from applier.clouds.openstack.calls import Calls
from applier.clouds.openstack.compute import Compute
from applier.clouds.openstack.moves import Moves
from applier.errors import ActionFailed


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again after a moment."""
    for name in ("_FIRST_S", "_LONGEST_S", "_INTERVAL_S"):
        monkeypatch.setattr(state_waits, name, 0.001)
    monkeypatch.setattr(moves, "_BETWEEN_S", 0.001)


class Nova:
    """One server, whose live migration to cmp2 was requested; each list is one step of Nova."""

    def __init__(self, *steps: Callable[[Nova], None]) -> None:
        self.task, self.host, self.status = "migrating", "cmp1", None
        self.requests: list[str] = []
        self._steps = list(steps)

    def _step(self) -> None:
        if self._steps:
            self._steps.pop(0)(self)

    def get_server(self, server_id: str) -> SimpleNamespace:
        return SimpleNamespace(
            id=server_id,
            name="web-1",
            status="MIGRATING" if self.task else "ACTIVE",
            task_state=self.task,
            compute_host=self.host,
            updated_at="2026-01-01T00:00:00Z",
        )

    def servers(self, **_: object) -> list[SimpleNamespace]:
        self._step()
        return [self.get_server("s")]

    def migrations(self, **_: object) -> list[SimpleNamespace]:
        self._step()
        old = SimpleNamespace(
            id=6, migration_type="live-migration", status="completed", dest_compute="cmp1"
        )
        new = {"id": 7, "migration_type": "live-migration", "dest_compute": "cmp2"}
        return [old] if self.status is None else [old, SimpleNamespace(**new, status=self.status)]

    def server_migrations(self, _server_id: str) -> list[SimpleNamespace]:
        self._step()
        return [SimpleNamespace(id=7, status=self.status)]

    def server_actions(self, _server_id: str) -> list[object]:
        return []

    def live_migrate_server(self, *_: object, **__: object) -> None:
        self.requests.append("live_migrate_server")

    def abort_server_migration(self, *_: object) -> None:
        self.requests.append("abort_server_migration")
        self.status, self.task = "cancelled", None


def becomes(**values: object) -> Callable[[Nova], None]:
    return lambda nova: nova.__dict__.update(values)


def nothing(_: Nova) -> None:
    pass


ENDS = becomes(status="completed", task=None, host="cmp2")


def migrate(nova: Nova, stop: threading.Event, destination: str | None = "cmp2") -> str:
    made = Moves(Compute(nova, Calls(patience_s=0.0)))
    return made.migrate("s", destination, True, stop, lambda _: None)


@pytest.mark.parametrize("destination", ["cmp2", None])
@pytest.mark.parametrize(
    "steps",
    [
        [nothing, nothing, nothing, becomes(status="accepted"), becomes(status="running"), ENDS],
        [nothing, nothing, nothing, ENDS],
    ],
    ids=["record later", "ended at once"],
)
def test_a_move_without_a_record_yet_is_not_begun_again(steps, destination):
    """As after a kill -9 of the applier, right after its request."""
    nova = Nova(*steps)
    assert migrate(nova, threading.Event(), destination) == "cmp2"
    assert nova.requests == []


def test_a_move_without_a_record_yet_that_goes_elsewhere_is_left_alone():
    nova = Nova(nothing, nothing, becomes(status="accepted"), ENDS)
    with pytest.raises(ActionFailed, match="refused: it is being moved to cmp2 already"):
        migrate(nova, threading.Event(), "cmp3")
    assert nova.requests == []


def test_a_stop_reaches_a_move_for_which_nova_has_chosen_no_host_yet():
    stop = threading.Event()
    stop.set()
    nova = Nova(
        becomes(status="accepted"), nothing, nothing, nothing, becomes(status="running"), nothing
    )
    with pytest.raises(ActionFailed, match="was stopped: Nova cancelled migration 7"):
        migrate(nova, stop)
    assert nova.requests == ["abort_server_migration"]


def test_a_stop_of_a_move_that_ends_before_it_can_be_cancelled():
    stop = threading.Event()
    stop.set()
    nova = Nova(becomes(status="accepted"), nothing, nothing, ENDS)
    assert migrate(nova, stop) == "cmp2"
    assert nova.requests == []
