# SPDX-License-Identifier: Apache-2.0
"""What a worker tells about itself: that it lives, at a steady pace, and that it drains."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from temporary_store import TemporaryStore

from applier.errors import DamagedRecord, StoreError
from applier.store.worker_jobs import REPORT_S, Worker
from applier.workers.lease_keeper import LeaseKeeper

WORKER = Worker("w1", "h", 1, "u", "1", ["site-b"], ["nop"], 4)


class Keeper:
    """The keeper of a worker that runs nothing, its clock, and how often it was told to drain."""

    def __init__(self, store: TemporaryStore, lease_s: float) -> None:
        self.now, self.reports, self.drained = 0.0, 0, 0
        self._store = store
        counting = SimpleNamespace(
            remove_worker=lambda name: store.remove_worker(name),
            report_worker=self._report,
            renew_jobs=lambda *_: None,
            held_jobs=lambda _: [],
            jobs_to_find=lambda *_: {},
        )
        store.report_worker(WORKER)
        self.keeper = LeaseKeeper(
            counting,
            SimpleNamespace(held=list),
            WORKER,
            lease_s=lease_s,
            drain=self._drain,
            clock=lambda: self.now,
        )

    def _report(self, worker: Worker) -> bool:
        self.reports += 1
        return self._store.report_worker(worker)

    def _drain(self) -> None:
        self.drained += 1

    def look_after(self, seconds: float) -> None:
        self.now += seconds
        self.keeper.look()


@pytest.mark.parametrize("lease_s", [2.0, 3600.0])
def test_a_worker_reports_at_a_pace_that_is_not_that_of_its_leases(store, lease_s):
    one = Keeper(store, lease_s)
    for _ in range(10):
        one.look_after(REPORT_S / 2)
    assert one.reports == 5


def test_a_signal_is_reported_at_once_and_is_no_reason_for_another(store):
    one = Keeper(store, 30.0)
    one.keeper.request_drain()
    one.look_after(0.1)
    one.look_after(0.1)
    assert (one.reports, one.drained) == (1, 0)
    assert store.workers()[0].draining


def test_what_the_record_says_ends_the_worker_once(store):
    one = Keeper(store, 30.0)
    store.drain_worker("w1")
    one.look_after(REPORT_S)
    one.keeper.request_drain()
    one.look_after(REPORT_S)
    assert one.drained == 1


@pytest.mark.parametrize("error", [StoreError("away"), DamagedRecord("the record", ["no table"])])
def test_a_worker_that_cannot_be_deregistered_ends_all_the_same(store, error, caplog):
    def refused(_: str) -> None:
        raise error

    store.remove_worker = refused
    with Keeper(store, 3600.0).keeper:
        pass
    assert f"could not be deregistered: {error}" in caplog.text
