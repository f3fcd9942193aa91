# SPDX-License-Identifier: Apache-2.0
"""A record with a damaged row of each kind: lists, reports, exports and the API show the others."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import timedelta

import pytest
from api_client import client_of, configured
from command_line import CommandLine
from store_checks.running_plans import NOW, claimed, starts, succeeds

from applier.contracts import Approval, HistoryEntry, Request
from applier.storage.sql import SqlStore
from applier.store import Service
from applier.store.worker_jobs import Worker
from applier.testing.sample_plans import MADE, new_plan
from planner.states import PlanState

PLAN = "00000000-0000-4000-8000-00000000000a"
#: The columns that are damaged in the last row of a table; its key.
COLUMNS = (
    *(("history", "at", "number"), ("event", "data", "number"), ("request", "limits", "number")),
    *(("attempt", "state", "id"), ("approval", "at", "number"), ("service", "pid", "uuid")),
    *(("worker", "queues", "name"), ("subscription", "held_back", "name")),
)


@pytest.fixture
def damaged(actionplan: CommandLine) -> CommandLine:
    """A command line whose record has two rows of each kind, the last of which is damaged."""
    configured(actionplan)
    plan = new_plan("a", "b", uuid=PLAN)
    with closing(SqlStore(f"sqlite:///{actionplan.record}")) as store:
        store.subscribe("ops", now=NOW)
        store.subscribe("readers", now=NOW, until=NOW + timedelta(days=9999))
        claim = claimed(store, plan)
        for who, action in zip(("ann", "bob"), plan.actions, strict=True):
            store.commit(PLAN, claim, [starts(action)], now=NOW)
            store.commit(PLAN, claim, [succeeds(action)], now=NOW)
            store.add_request(PLAN, Request(verb="limit", who=who), now=NOW)
            store.report_service(Service(f"{PLAN[:-3]}{who}", "far", 7, who, MADE, NOW, "west"))
            store.report_worker(Worker(who, "far", 7, who, "1.0", ["q"], ["nop"], 1, 0))
        store.move_claimed(PLAN, claim, PlanState.PAUSED, now=NOW, read=2)
        for who in ("ann", "bob"):
            store.approve_plan(PLAN, Approval(who=who, at=NOW, content="c"))
            store.add_history(PLAN, HistoryEntry(verb="note", who=who, at=NOW))
    with closing(sqlite3.connect(actionplan.record)) as database, database:
        for table, column, key in COLUMNS:
            last = f"{key} = (SELECT max({key}) FROM actionplan_{table})"  # noqa: S608
            database.execute(f"UPDATE actionplan_{table} SET {column} = '{{' WHERE {last}")  # noqa: S608
    return actionplan


def test_each_list_shows_the_others_and_names_it(damaged: CommandLine) -> None:
    for words, there, column in (
        (("history", "last"), "ann", "at"),
        (("event", "list"), "a ONGOING -> SUCCEEDED", "data"),
        (("event", "subscription", "list"), "ops", "held_back"),
        (("service", "list"), "ann", "pid"),
        (("worker", "list"), "ann", "queues"),
    ):
        ended = damaged(*words)
        assert ended.code == 0
        assert there in ended.out
        assert ended.out.splitlines()[-1].count("damaged") == 1
        [told] = ended.err.splitlines()
        assert f"is damaged: {column} '{{' is not " in told
        assert told.endswith("; see: actionplan db check")
        rows = json.loads(damaged(*words, "-f", "json").out)
        assert None in rows[-1].values()
    ended = damaged("action", "show", "last", "b")
    assert (ended.code, "state '{' is none of" in ended.err) == (0, True)


def test_a_report_and_an_export_have_all_the_rest(damaged: CommandLine) -> None:
    page = damaged("report", "last")
    assert (page.code, page.err) == (0, "")
    for name in ("attempt 1 of action", "entry 3 of", "request 2 is", "approval 2 is"):
        assert name in page.out.lower()
    ended = damaged("export", "last")
    found = json.loads(ended.out)
    assert [len(found[part]) for part in ("attempts", "requests", "damaged")] == [1, 1, 3]
    assert ended.code == 1
    assert [line.partition(":")[0] for line in ended.err.splitlines()] == ["Left out"] * 3
    told = [text.partition(" is damaged: ")[0] for text in found["damaged"]]
    assert told[1:] == ["entry 3 of the history", "request 2"]


def test_the_api_has_the_others_and_names_it(damaged: CommandLine) -> None:
    api = client_of(damaged)
    for path, part, number in (
        (f"/v2/plans/{PLAN}/history", "history", 2),
        (f"/v2/plans/{PLAN}/requests", "requests", 1),
        (f"/v2/plans/{PLAN}/approvals", "approvals", 1),
        (f"/v2/plans/{PLAN}/actions/b", "attempts_made", 0),
        ("/v2/subscriptions", "subscriptions", 1),
        ("/v2/services", "services", 1),
        ("/v2/workers", "workers", 1),
        ("/v2/events?limit=1000", "events", 11),
    ):
        answer = api.simulate_get(path)
        assert answer.status_code == 200, (path, answer.text)
        assert answer.json["damaged"], path
        assert len(answer.json[part]) == number, path
    [service] = api.simulate_get("/v1/services").json["services"]
    assert service["host"] == "far"
