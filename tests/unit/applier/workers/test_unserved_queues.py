# SPDX-License-Identifier: Apache-2.0
"""A queue that nobody serves is told to who watches the plan, and again when somebody serves it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from followed_job import jobs_on_record
from sample_plans import new_plan
from temporary_store import TemporaryStore

from applier import configuration
from applier.assembly import Assembly
from applier.contracts import JobOffer
from applier.operations import services
from applier.operations.predictions import predicted
from applier.report import content
from applier.run.expected_durations import Durations
from applier.store.worker_jobs import Worker
from applier.workers.follower import JobFollower

NOW = datetime(2026, 1, 2, tzinfo=UTC)
WORKER = Worker("w1", "h", 1, "u", "1", ["site-b", "site-c"], ["nop"], 4)


@pytest.fixture
def plan(store: TemporaryStore) -> str:
    """Return the uuid of a plan, of whose actions one has a job in each of two queues."""
    offers = [JobOffer(1, queue, "nop", {}) for queue in ("site-c", "site-b")]
    return jobs_on_record(store, "ab", offers).uuid


def follower(store: TemporaryStore, plan: str, told: list[str], *, lease_s: float) -> JobFollower:
    """Return a follower of a plan whose clock stands still: all jobs count as unsent."""
    messages = SimpleNamespace(send=lambda *_: None, look=lambda *_: None)
    return JobFollower(
        plan,
        store,
        messages,
        lambda _: None,
        lease_s=lease_s,
        resend_s=-1.0,
        tell=told.append,
        clock=lambda: 0.0,
    )


def test_the_applier_tells_it_once_and_once_that_all_are_served(store, plan, caplog):
    caplog.set_level("INFO")
    told: list[str] = []
    applier = follower(store, plan, told, lease_s=30.0)
    applier.look()
    applier.look()
    assert told == ["No worker serves site-b, site-c."]
    store.report_worker(WORKER._replace(queues=["site-b"]))
    applier.look()
    assert told[1:] == ["No worker serves site-c."]
    store.report_worker(WORKER._replace(name="w2", queues=["site-c"]))
    applier.look()
    applier.look()
    assert told[2:] == ["Each queue has a worker now."]
    assert "no worker serves site-c" in caplog.text
    assert "each queue has a worker now" in caplog.text


def test_a_worker_that_drains_serves_no_queue(store, plan):
    store.report_worker(WORKER)
    told: list[str] = []
    applier = follower(store, plan, told, lease_s=30.0)
    applier.look()
    assert told == []
    store.report_worker(WORKER._replace(draining=True))
    applier.look()
    assert told == ["No worker serves site-b, site-c."]


def test_who_watches_by_the_record_finds_the_same(store, plan):
    def found() -> str:
        return services.waits_in_vain(SimpleNamespace(store=store), store.load_plan(plan))

    assert found() == "No worker serves site-b, site-c."
    store.report_worker(WORKER)
    assert found() == ""
    assert services.waits_in_vain(SimpleNamespace(store=store), new_plan("a")) == ""


def test_who_looks_at_the_page_reads_the_same(store, plan, tmp_path, monkeypatch):
    monkeypatch.setattr(Assembly, "store", store)
    conf = configuration.load(arguments=["--config-dir", str(tmp_path)])
    with closing(Assembly(conf)) as assembly:

        def needs() -> list[str]:
            saved = store.load_plan(plan)
            shown = content.report(assembly, saved, 1, now=NOW, is_stored=True)
            return [need.text for need in shown.needs]

        assert needs() == ["No worker serves site-b, site-c."]
        store.report_worker(WORKER)
        assert needs() == []


@pytest.mark.parametrize(
    ("action_type", "parameters", "unserved"),
    [("sleep", {"duration": 1}, set()), ("nop", {"message": "x"}, {"site-c"})],
)
def test_an_action_that_only_waits_needs_no_worker(
    store, tmp_path, monkeypatch, action_type, parameters, unserved
):
    monkeypatch.setattr(Assembly, "store", store)
    monkeypatch.setattr(Assembly, "route", ("region",))
    conf = configuration.load(arguments=["--config-dir", str(tmp_path)])
    plan = new_plan("a")
    [action] = plan.actions
    action = replace(
        action, action_type=action_type, input_parameters=parameters, tokens=("region:site-c",)
    )
    seconds = {action.uuid: 1.0}
    with closing(Assembly(conf)) as assembly:
        found = predicted(
            assembly, replace(plan, actions=(action,)), Durations(seconds, seconds, {}), 1
        )
    assert set(found.unserved) == unserved
