# SPDX-License-Identifier: Apache-2.0
"""A record with a damaged row of each kind: one sentence, and exports have the others."""

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
from applier.store import Service
from applier.store.worker_jobs import Worker
from applier.testing.sample_plans import MADE, new_plan
from planner.plan.states import PlanState

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
    with actionplan.store() as store:
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
            last = f"{key} = (SELECT max({key}) FROM actionplan_{table})"
            database.execute(f"UPDATE actionplan_{table} SET {column} = '{{' WHERE {last}")
    return actionplan


def test_whatever_needs_it_ends_in_one_sentence_that_names_it(damaged):
    for words, named in (
        (("history", "last"), "entry 3 of the history is damaged: at "),
        (("event", "list"), "is damaged: data "),
        (("event", "subscription", "list"), "is damaged: held_back "),
        (("service", "list"), "is damaged: pid "),
        (("worker", "list"), "is damaged: queues "),
        (("action", "show", "last", "b"), "is damaged: state "),
        (("report", "last"), "entry 3 of the history is damaged: at "),
    ):
        ended = damaged(*words)
        [told] = ended.err.splitlines()
        assert (ended.code, ended.out) == (1, "")
        assert told.startswith("Refused: ")
        assert named in told


def test_an_export_has_all_the_rest(damaged):
    ended = damaged("export", "last")
    found = json.loads(ended.out)
    assert [len(found[part]) for part in ("attempts", "requests", "damaged")] == [1, 1, 3]
    assert ended.code == 1
    assert [line.partition(":")[0] for line in ended.err.splitlines()] == ["Left out"] * 3
    told = [text.partition(" is damaged: ")[0] for text in found["damaged"]]
    assert told[1:] == ["entry 3 of the history", "request 2"]


def test_the_api_names_it_in_one_sentence(damaged):
    api = client_of(damaged)
    for path, named in (
        (f"/v2/plans/{PLAN}/history", "entry 3 of the history is damaged: at "),
        (f"/v2/plans/{PLAN}/requests", "request 2 is damaged: limits "),
        (f"/v2/plans/{PLAN}/approvals", "approval 2 is damaged: at "),
        (f"/v2/plans/{PLAN}/actions/b", "is damaged: state "),
        ("/v2/subscriptions", "is damaged: held_back "),
        ("/v2/services", "is damaged: pid "),
        ("/v2/workers", "is damaged: queues "),
        ("/v2/events?limit=1000", "is damaged: data "),
    ):
        answer = api.simulate_get(path)
        assert (answer.status_code, answer.json["title"]) == (500, "Damaged record")
        assert named in answer.json["detail"], path
