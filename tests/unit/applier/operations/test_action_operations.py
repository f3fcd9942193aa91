# SPDX-License-Identifier: Apache-2.0
"""Operations on one action, and what is said about its job at a worker."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from sample_plans import new_plan
from store_checks.running_plans import NOW, ends, starts
from temporary_store import TemporaryStore

from applier.contracts import Claimant, JobOffer, Report
from applier.errors import ActionFailed, ActionNotFound, PlanConflict
from applier.operations import actions, explanation, lookup, services
from applier.store.worker_jobs import (
    AttemptKey,
    JobTask,
    StopReason,
    Worker,
    WorkerJob,
    WorkerJobState,
)
from planner.plan.model import Action
from planner.plan.states import ActionState, PlanState


def test_an_action_that_there_is_not_is_answered_with_those_that_there_are(site):
    plan = new_plan("move-db", "move-web")
    site.store.save_plan(plan)
    meant = "; did you mean 'move-web'[?] Known: move-db, move-web$"
    with pytest.raises(ActionNotFound, match=meant):
        lookup.find_action(plan, "move-wbe")
    # A part of the plan was loaded, in which no other action stands.
    with pytest.raises(ActionNotFound, match=meant):
        lookup.find_part(site.store, plan.uuid, "move-wbe")


def test_an_action_is_skipped_and_what_needs_it_is_told(site):
    a, b, c = new_plan("a", "b", "c").actions
    chain = (a, replace(b, needs=(a.uuid,)), replace(c, needs_any=((b.uuid,),)))
    plan = replace(new_plan(), actions=chain)
    site.store.save_plan(plan)
    actions.skip(site.assembly, site.operator, plan, plan.actions[0], "by hand")
    first = site.now(plan).actions[0]
    assert (first.state, first.status_message) == (ActionState.SKIPPED, "skipped by ada: by hand")
    assert site.told[0].startswith("a will count as done")
    assert (site.told[1], "1 more" in site.told[2]) == ("  b", True)


def test_an_action_of_a_plan_that_runs_is_asked_to_be_skipped(site):
    plan, _ = site.claimed("a")
    actions.skip(site.assembly, site.operator, plan, plan.actions[0], "by hand")
    (request,) = site.store.requests(plan.uuid)
    assert (request.verb, request.action) == ("skip", plan.actions[0].uuid)
    assert site.told[0] == "No action needs a."
    assert site.now(plan).actions[0].state is ActionState.PENDING


def running(site) -> tuple[object, Action]:
    plan, claim = site.claimed("a")
    site.store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
    plan = site.now(plan)
    return plan, plan.actions[0]


def test_an_action_that_runs_is_aborted_and_not_skipped(site):
    plan, action = running(site)
    with pytest.raises(PlanConflict):
        actions.skip(site.assembly, site.operator, plan, action, "by hand")
    actions.abort(site.assembly, site.operator, plan, action, None)
    (request,) = site.store.requests(plan.uuid)
    assert (request.verb, request.action, request.who) == ("abort", action.uuid, "ada")


def test_what_the_cloud_says_about_a_completion_is_passed_on(site):
    plan, action = running(site)

    def refuse(call):
        raise ActionFailed("no live migration of it is running")

    site.assembly.ask_cloud = refuse
    moves = replace(action, action_type="migrate", resource_id="i-1")
    with pytest.raises(ActionFailed):
        actions.force_complete(site.assembly, site.operator, plan, moves)
    asked = []
    site.assembly.ask_cloud = asked.append
    actions.force_complete(site.assembly, site.operator, plan, moves)
    assert len(asked) == 1
    assert "asked to complete a at once" in site.told[0]


@pytest.mark.parametrize(
    ("ended", "new", "is_settled"),
    [
        (ActionState.UNKNOWN, ActionState.SUCCEEDED, True),
        (ActionState.UNKNOWN, ActionState.FAILED, True),
        (ActionState.FAILED, ActionState.SUCCEEDED, True),
        (ActionState.FAILED, ActionState.FAILED, False),
        (ActionState.CANCELLED, ActionState.SUCCEEDED, False),
    ],
)
def test_what_is_in_doubt_or_failed_is_settled(site, ended, new, is_settled):
    plan, claim = site.claimed("a")
    action = plan.actions[0]
    site.store.commit(plan.uuid, claim, [starts(action)], now=NOW)
    site.store.commit(plan.uuid, claim, [ends(action, ended)], now=NOW)
    settled = plan, site.now(plan).actions[0], new, "looked"
    with pytest.raises(PlanConflict):
        actions.settle(site.assembly, site.operator, *settled)
    site.store.move_claimed(plan.uuid, claim, PlanState.FAILED, now=NOW)
    if is_settled:
        actions.settle(site.assembly, site.operator, *settled)
    else:
        with pytest.raises(PlanConflict):
            actions.settle(site.assembly, site.operator, *settled)
    now = site.now(plan).actions[0]
    assert now.state is (new if is_settled else ended)
    assert (now.status_message == "set by ada: looked") is is_settled


# What is said about the job of an action that runs at a worker, or is to.

KEY = "t"


def line_of(store: TemporaryStore, uuid: str) -> list[str]:
    plan = store.load_plan(uuid)
    parts = SimpleNamespace(plans=store, store=store)
    return explanation.explained(parts, plan, plan.actions[0], 4)[1:]


def test_a_job_waits_for_workers_then_runs_then_was_lost(store):
    plan = new_plan("a", state=PlanState.PENDING)
    store.save_plan(plan)
    claim = store.claim_plan(plan.uuid, Claimant(host="h", pid=1, user="u"), now=NOW)
    key = AttemptKey(plan.uuid, plan.actions[0].uuid, 1)
    start = Report(
        uuid=key.action,
        old=ActionState.PENDING,
        state=ActionState.ONGOING,
        job=JobOffer(1, "site-b", "nop", {}),
    )
    store.commit(plan.uuid, claim, [start], now=NOW)
    assert line_of(store, plan.uuid) == ["  No worker serves site-b."]
    store.report_worker(Worker("w1", "h", 1, "u", "1", ["site-b"], ["nop"], 4))
    (line,) = line_of(store, plan.uuid)
    assert "1 worker of the queue site-b" in line
    store.take_job(key, worker="w1", token=KEY, lease_s=-600)
    assert line_of(store, plan.uuid) == ["  Worker w1 carries it out."]
    store.stop_jobs([key], StopReason.ABORT)
    (line,) = line_of(store, plan.uuid)
    assert "Worker w1" in line
    assert "told to stop" in line
    store.fence_jobs(plan.uuid)
    (line,) = line_of(store, plan.uuid)
    assert "w1 was lost" in line
    store.verify_job(key)
    store.take_job(key, worker="w2", token=KEY, lease_s=600)
    (line,) = line_of(store, plan.uuid)
    assert "w2 finds out" in line
    assert "told to stop" in line


def test_a_job_that_is_looked_for_on_its_machine_is_not_carried_out_again(store):
    job = WorkerJob(
        AttemptKey("p", "a", 1), "site-b", "nop", WorkerJobState.DOING, JobTask.FIND, 1.0, "w2"
    )
    told = services._line(SimpleNamespace(store=store), job)
    assert told == "Worker w2 finds out what became of it."
