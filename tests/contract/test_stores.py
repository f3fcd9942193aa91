"""Every store keeps the contract, for threads and for processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import closing

import pytest
import sqlalchemy as sa

from applier.contracts import Claimant, Store
from applier.errors import PlanConflict
from applier.storage import schema
from applier.storage.connection import make_engine, parse
from applier.storage.memory import MemoryStore
from applier.storage.sql import SqlStore
from applier.storage.tables import metadata
from applier.testing.databases import mysql_url, postgresql_url  # noqa: F401
from applier.testing.plans import MADE, new_plan
from applier.testing.stores import StoreContract
from planner.states import PlanState

SERVERS = [
    pytest.param("postgresql_url", marks=pytest.mark.server, id="postgresql"),
    pytest.param("mysql_url", marks=pytest.mark.server, id="mysql"),
]


@pytest.fixture
def url(request, tmp_path) -> str:
    """An empty database: a new file, or the scratch database of the session, emptied."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/plans.db"
    url = request.getfixturevalue(request.param)
    schema.upgrade(url)
    engine = make_engine(parse(url))
    with engine.begin() as database:
        for table in reversed(metadata.sorted_tables):
            database.execute(sa.delete(table))
    engine.dispose()
    return url


@pytest.fixture
def store(url) -> Iterator[Store]:
    with closing(SqlStore(url)) as store:
        yield store


@pytest.mark.parametrize("url", ["sqlite", *SERVERS], indirect=True)
class TestSqlStore(StoreContract):
    def test_of_several_processes_that_claim_at_once_exactly_one_does(self, url):
        with closing(SqlStore(url)) as store:
            uuids = []
            for _ in range(10):
                plan = new_plan("a")
                uuids.append(plan.uuid)
                store.save_plan(plan)
                store.move_plan(plan.uuid, PlanState.PENDING, now=MADE)
            claims = processes(4, claim_each, url, uuids)
            for number, uuid in enumerate(uuids):
                (winner,) = [i for i, won in enumerate(claims) if won[number]]
                assert store.claimant(uuid).pid == winner


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


def processes(number, function, *arguments):
    """Call a function in processes that began with nothing, each with its index and a barrier."""
    fresh = multiprocessing.get_context("spawn")
    barrier = fresh.Barrier(number, timeout=30)
    answers = fresh.Queue()
    running = [
        fresh.Process(target=function, args=(index, barrier, answers, *arguments))
        for index in range(number)
    ]
    for process in running:
        process.start()
    try:
        got = dict(answers.get(timeout=30) for _ in running)
    finally:
        for process in running:
            process.join(timeout=30)
    return [got[index] for index in range(number)]


def claim_each(index, barrier, answers, url, uuids):
    """Claim one plan after the other, each at the same moment as the other processes."""
    store, won = SqlStore(url), []
    for uuid in uuids:
        barrier.wait()
        try:
            store.claim_plan(uuid, Claimant(host="here", pid=index, user="wanda"), now=MADE)
            won.append(True)
        except PlanConflict:
            won.append(False)
    store.close()
    answers.put((index, won))
