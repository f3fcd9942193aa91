# SPDX-License-Identifier: Apache-2.0
"""What one worker writes into the record hinders no other: it may be anybody with its account."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from followed_job import change, jobs_on_record

from applier.contracts import JobOffer
from applier.errors import sound_part
from applier.store.worker_jobs import AttemptKey, Served, Worker
from applier.workers.follower import JobFollower
from planner.plan.states import ActionState

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GOOD = {
    "state": "SUCCEEDED",
    "outcome": "changed",
    "state_reason": None,
    "message": None,
    "output": "",
    "given_up": False,
    "left_in": None,
}


@pytest.mark.parametrize(
    "written",
    [
        "no JSON",
        "[]",
        "null",
        "{}",
        json.dumps({**GOOD, "more": 1}),
        json.dumps({**GOOD, "state": "wings"}),
        json.dumps({**GOOD, "state": "ONGOING"}),
        json.dumps({**GOOD, "state": "REVERTED"}),
        json.dumps({**GOOD, "state": None}),
        json.dumps({**GOOD, "outcome": "wings"}),
        json.dumps({**GOOD, "state_reason": 7}),
        json.dumps({**GOOD, "message": {"a": 1}}),
        json.dumps({**GOOD, "output": ["a"]}),
        json.dumps({**GOOD, "given_up": "no"}),
    ],
)
def test_a_result_that_is_none_leaves_its_action_in_doubt_and_others_end(store, written):
    offer, reports = JobOffer(1, "site-b", "nop", {}), []
    plan = jobs_on_record(store, "ab", [offer, offer])
    silent = SimpleNamespace(send=lambda *_: None, look=lambda *_: None)
    follower = JobFollower(plan.uuid, store, silent, reports.append, lease_s=30.0, resend_s=5.0)
    for action in plan.actions:
        key = AttemptKey(plan.uuid, action.uuid, 1)
        follower.follow(key, offer)
        assert store.take_job(key, worker="w1", token="t", lease_s=600)  # noqa: S106
        assert store.end_job(key, "t", GOOD)
    bad, good = (action.uuid for action in plan.actions)
    change(store, "UPDATE actionplan_worker_job SET result = ? WHERE action = ?", written, bad)
    follower.look()
    found = {report.uuid: report for report in reports}
    assert found[bad].state is ActionState.UNKNOWN
    assert "worker w1 " in (found[bad].message or "")
    assert found[good].state is ActionState.SUCCEEDED


@pytest.mark.parametrize("written", ["no JSON", '"site-b"', "7", "null", "[7]"])
def test_a_worker_that_says_nothing_readable_serves_nothing_and_others_are_listed(store, written):
    one = Worker("w1", "h", 1, "u", "1", ["site-b"], ["nop"], 4)
    store.report_worker(one)
    store.report_worker(one._replace(name="w2"))
    statement = "UPDATE actionplan_worker SET queues = ?, types = ? WHERE name = 'w1'"
    change(store, statement, written, written)
    workers, damaged = sound_part(store.workers)
    assert [(worker.name, list(worker.queues)) for worker in workers] == [("w2", ["site-b"])]
    (row,) = damaged
    assert str(row).startswith("worker w1 is damaged: queues ")
    assert store.served_queues() == {"site-b": Served(1, 4)}
