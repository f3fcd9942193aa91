# SPDX-License-Identifier: Apache-2.0
"""Every store keeps the contract, for threads and for processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from sample_plans import MADE, new_plan
from scratch_database import empty_record_on
from store_checks.running_plans import RunStoreUnderTest
from store_suite import (
    RunStoreContract,
    StoreContract,
)
from temporary_store import TemporaryStore, empty_record

from applier.contracts import Claimant
from applier.errors import ApplierError, PlanConflict
from applier.storage.sql_store import SqlStore
from planner.errors import InvalidTransition, PlannerError
from planner.plan.states import PlanState

PROCESSES, ROUNDS = 4, 8

SERVERS = [
    pytest.param("postgresql_url", marks=pytest.mark.server, id="postgresql"),
    pytest.param("mysql_url", marks=pytest.mark.server, id="mysql"),
]


@pytest.fixture
def url(request, tmp_path) -> str:
    """An empty database: a new file, or the scratch database of the session, emptied."""
    if request.param == "sqlite":
        path = tmp_path / "plans.db"
        path.write_bytes(empty_record())
        return f"sqlite:///{path}"
    url = request.getfixturevalue(request.param)
    empty_record_on(url)
    return url


@pytest.fixture
def store(url) -> Iterator[SqlStore]:
    with closing(SqlStore(url)) as store:
        yield store


@pytest.mark.parametrize("url", ["sqlite", *SERVERS], indirect=True)
class TestSqlStore(StoreContract):
    @pytest.mark.slow
    @pytest.mark.long
    def test_of_several_processes_at_once_exactly_one_comes_first(self, url):
        with closing(SqlStore(url)) as store:
            uuids, own = [], []
            for number in range(ROUNDS * (1 + PROCESSES)):
                plan = new_plan("a")
                (uuids if number < ROUNDS else own).append(plan.uuid)
                store.save_plan(plan)
                store.move_plan(plan.uuid, PlanState.PENDING, now=MADE)
            raced = processes(PROCESSES, race, url, uuids, own)
            for number, uuid in enumerate(uuids):
                (winner,) = [i for i, answer in enumerate(raced) if answer["claim"][number]]
                assert raced[winner]["pid"][number] == winner
                assert sum(answer["resume"][number] for answer in raced) == 1
                assert store.load_plan(uuid).state is PlanState.PENDING
                held = sorted(answer["held"][number] for answer in raced)
                assert held == [0, 2, 2, 2]


def only(part: type) -> Iterator[SimpleNamespace]:
    """Yield a store that has the methods of a protocol and no others."""
    names = [name for name in dir(part) if not name.startswith("_")]
    with closing(TemporaryStore()) as store:
        yield SimpleNamespace(**{name: in_other_words(getattr(store, name)) for name in names})


def in_other_words(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method raise its errors with a text of another project."""

    def reworded(*given: Any, **more: Any) -> Any:
        try:
            return method(*given, **more)
        except (ApplierError, PlannerError) as refusal:
            refusal.args = ("nein",)
            raise

    return reworded


class TestRunStoreAlone(RunStoreContract):
    @pytest.fixture
    def store(self):
        yield from only(RunStoreUnderTest)


_barrier = None


def processes(number, function, *arguments):
    """Call a function in processes that began with nothing; it gets its index and a barrier."""
    fresh = multiprocessing.get_context("spawn")
    shared = (fresh.Barrier(number),)
    with ProcessPoolExecutor(number, fresh, initializer=meet, initargs=shared) as executor:
        running = [executor.submit(called, function, i, *arguments) for i in range(number)]
        # A process that dies breaks the others off: nothing is waited for in vain.
        return [future.result() for future in running]


def meet(barrier):
    global _barrier
    _barrier = barrier


def called(function, index, *arguments):
    try:
        return function(index, _barrier, *arguments)
    except BaseException:
        _barrier.abort()
        raise


def race(index, barrier, url, uuids, own):
    """Claim, resume and reserve, each at the same moment as the other processes."""
    store = SqlStore(url)
    got = {"claim": [], "pid": [], "resume": [], "held": []}
    me = Claimant(host="here", pid=index, user="wanda")

    def first(call):
        barrier.wait()
        try:
            call()
        except (PlanConflict, InvalidTransition):
            return False
        return True

    for number, uuid in enumerate(uuids):
        got["claim"].append(first(lambda uuid=uuid: store.claim_plan(uuid, me, now=MADE)))
        barrier.wait()
        got["pid"].append(store.claimant(uuid).pid)
        got["resume"].append(first(lambda uuid=uuid: store.resume_plan(uuid, [], now=MADE)))
        mine = own[index * ROUNDS + number]
        claim = store.claim_plan(mine, me, now=MADE)
        nodes = [f"node:{number}", f"instance:{number}"][:: 1 if index % 2 else -1]
        barrier.wait()
        store.reserve(mine, claim, nodes, now=MADE)
        got["held"].append(len(store.held_by_others(mine)))
    store.close()
    return got
