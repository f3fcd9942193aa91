# SPDX-License-Identifier: Apache-2.0
"""``worker list`` and ``worker drain``, and the same over HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
from api_client import client_of, configured, post
from command_line import CommandLine

from applier.run.this_process import this_host
from applier.storage.sql_store import SqlStore
from applier.store.worker_jobs import Worker

#: Above what Linux gives to any process.
NO_PID = 2**22 + 1
HERE = Worker(
    "site-b-1",
    host="elsewhere",
    pid=os.getpid(),
    user="actionplan",
    version="3.0",
    queues=["site-b", "site-c"],
    types=["nop", "puppet", "shell", "sleep", "sync"],
    places=8,
    running=2,
)
GONE = HERE._replace(name="site-b-2", host=this_host(), pid=NO_PID, queues=[], running=0)


@pytest.fixture
def store(actionplan: CommandLine) -> Iterator[SqlStore]:
    """Yield the record of a command line, on which two workers have reported."""
    actionplan.good("list")
    with actionplan.store() as opened:
        for worker in (HERE, GONE):
            opened.report_worker(worker)
        yield opened


def test_workers_are_listed_with_what_they_serve(actionplan, store):
    assert store.workers()
    table = actionplan.good("worker", "list")
    assert "nop puppet shell +2" in table
    assert "2 of 8" in table
    [gone] = [line for line in table.splitlines() if "site-b-2" in line]
    assert "s ago, gone" in gone
    first, _ = json.loads(actionplan.good("worker", "list", "-f", "json"))
    assert (first["name"], first["queues"], first["process"]) == (
        "site-b-1",
        ["site-b", "site-c"],
        os.getpid(),
    )
    assert (first["running"], first["places"], first["draining"]) == (2, 8, False)


def test_a_worker_is_drained_once_and_the_history_says_by_whom(actionplan, store):
    ended = actionplan("worker", "drain", "site-b-3")
    told = ("there is no worker 'site-b-3'", "site-b-1")
    assert (ended.code, all(text in ended.err for text in told)) == (1, True)
    told = actionplan.good("worker", "drain", "site-b-1")
    assert "takes no more jobs" in told
    assert "It has 2 jobs." in told
    assert "drains already" in actionplan.good("worker", "drain", "site-b-1")
    assert ", draining" in actionplan.good("worker", "list")
    assert store.report_worker(HERE)
    assert not store.report_worker(GONE)
    [entry] = json.loads(actionplan.good("history", "-f", "json"))
    assert (entry["verb"], entry["who"], entry["why"]) == ("worker drain", "operator", "site-b-1")


def test_the_same_over_http(actionplan, store):
    api = client_of(configured(actionplan))
    first, _ = api.simulate_get("/v2/workers").json["items"]
    assert (first["name"], first["types"][0], first["silent_s"] < 60) == ("site-b-1", "nop", True)
    answer = post(api, "/v2/workers/site-b-1/drain", {})
    assert (answer.status_code, answer.json["worker"]["draining"]) == (200, True)
    assert answer.json["messages"][-1] == "It has 2 jobs."
    assert store.report_worker(HERE)
    [entry] = api.simulate_get("/v2/history").json["items"]
    assert (entry["verb"], entry["why"], bool(entry["request_id"])) == (
        *("worker drain", "site-b-1"),
        True,
    )
    assert post(api, "/v2/workers/w/drain", {}).json["title"] == "Worker not found"


def test_without_workers_it_is_said_where_actions_run(actionplan):
    assert "actions run in the appliers themselves" in actionplan.good("worker", "list")
    ended = actionplan("worker", "drain", "w1")
    assert (ended.code, "none is registered" in ended.err) == (1, True)
