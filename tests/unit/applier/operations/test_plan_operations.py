# SPDX-License-Identifier: Apache-2.0
"""What operators do with plans: the record afterwards, what is told, and what is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from sample_plans import new_plan
from store_checks.running_plans import NOW

from applier.contracts import Claimant, Report
from applier.errors import PlanConflict
from applier.operations import plans, removal
from applier.operations import who_runs as claim_text
from applier.run.resume import take_over
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import ActionState, PlanState

ENDED = [PlanState.SUCCEEDED, PlanState.FAILED, PlanState.CANCELLED, PlanState.SUPERSEDED]


#: More than the number that any process can have.
NO_PROCESS = 2**31 - 1


def test_who_runs_a_plan_is_asked_to_pause_it(site):
    plan, _ = site.claimed("a")
    plans.pause(site.assembly, site.operator, plan, "lunch")
    (request,) = site.store.requests(plan.uuid)
    assert (request.verb, request.who, request.why) == ("pause", "ada", "lunch")
    (told,) = site.told
    assert "eve on elsewhere, process 7" in told


def half_done(site):
    """Return a claimed plan of two nodes, of which one has begun."""
    plan = new_plan("web-1/drain", "web-1/undrain", "web-2/drain", state=PlanState.PENDING)
    places = [(HeldPlace("serial:web", a.name.partition("/")[0]),) for a in plan.actions]
    actions = [replace(a, places=p) for a, p in zip(plan.actions, places, strict=True)]
    rules, limits = {"serial:web": PlaceRule()}, {"serial:web": 1}
    plan = replace(plan, actions=tuple(actions), places=rules, limits=limits)
    site.store.save_plan(plan)
    claim = site.store.claim_plan(plan.uuid, Claimant(host="elsewhere", pid=7, user="eve"), now=NOW)
    first = plan.actions[0].uuid
    started = Report(uuid=first, old=ActionState.PENDING, state=ActionState.ONGOING)
    ended = Report(uuid=first, old=ActionState.ONGOING, state=ActionState.SUCCEEDED)
    site.store.commit(plan.uuid, claim, [started], now=NOW)
    site.store.commit(plan.uuid, claim, [ended], now=NOW)
    return site.now(plan), claim


def test_a_halt_says_which_nodes_finish_first_or_are_left_half_done(site):
    for way, verb in ((plans.pause, "pause"), (plans.cancel, "cancel")):
        for at_once in (False, True):
            plan, _ = half_done(site)
            site.told.clear()
            way(site.assembly, site.operator, plan, None, at_once=at_once)
            (request,) = site.store.requests(plan.uuid)
            assert request.verb == verb + "-now" * at_once
            assert ("half done" in site.told[0]) is at_once
            assert "web-1" in site.told[0]
            assert "web-2" not in site.told[0]


def test_a_cancel_that_lets_nodes_finish_can_be_made_at_once(site):
    plan, claim = half_done(site)
    site.store.move_claimed(plan.uuid, claim, PlanState.CANCELLING, now=NOW)
    for at_once, number in ((False, 0), (True, 1)):
        plans.cancel(site.assembly, site.operator, site.now(plan), None, at_once=at_once)
        assert len(site.store.requests(plan.uuid)) == number


def test_only_requests_to_the_present_run_are_shown(site):
    plan, claim = site.claimed("a")
    plans.pause(site.assembly, site.operator, plan, None)
    shown = claim_text.claimant_lines(site.store, site.now(plan), "plans.db", NOW)
    assert any("Requested: pause, by ada" in line for line in shown)
    site.store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)
    site.store.resume_plan(plan.uuid, [], now=NOW)
    site.store.claim_plan(plan.uuid, Claimant(host="elsewhere", pid=8, user="eve"), now=NOW)
    again = list(claim_text.claimant_lines(site.store, site.now(plan), "plans.db", NOW))
    assert "elsewhere" in again[0]
    assert not any("Requested" in line for line in again)


def test_a_plan_that_is_paused_is_left_so(site):
    plan = site.saved("a", state=PlanState.PAUSED)
    plans.pause(site.assembly, site.operator, plan, None)
    assert site.now(plan).state is PlanState.PAUSED
    assert "is PAUSED already" in site.told[0]


@pytest.mark.parametrize("state", [PlanState.RECOMMENDED, PlanState.PENDING, PlanState.PAUSED])
def test_a_plan_that_nobody_runs_is_cancelled_with_its_actions(site, state):
    plan = site.saved("a", "b", state=state)
    plans.cancel(site.assembly, site.operator, plan, "wrong hosts")
    now = site.now(plan)
    assert now.state is PlanState.CANCELLED
    assert now.status_message == "cancelled by ada: wrong hosts"
    assert {action.state for action in now.actions} == {ActionState.CANCELLED}


def test_who_runs_a_plan_is_asked_to_cancel_it_once(site):
    plan, claim = site.claimed("a")
    plans.cancel(site.assembly, site.operator, plan, None)
    (request,) = site.store.requests(plan.uuid)
    assert request.verb == "cancel"
    site.store.move_claimed(plan.uuid, claim, PlanState.CANCELLING, now=plan.created_at)
    plans.cancel(site.assembly, site.operator, site.now(plan), None)
    assert len(site.store.requests(plan.uuid)) == 1
    assert "is being cancelled already" in site.told[-1]


def test_a_plan_whose_applier_is_gone_is_cancelled_at_once(site):
    plan, _ = site.claimed("a", pid=NO_PROCESS)
    plans.cancel(site.assembly, site.operator, plan, None)
    assert site.now(plan).state is PlanState.CANCELLED
    assert site.store.requests(plan.uuid) == []
    assert "the process that ran it is gone" in site.told[0]


def test_a_cancel_reaches_whoever_took_the_plan_over_while_its_commands_were_ended(site):
    plan, claim = site.claimed("a", pid=NO_PROCESS)
    started = Report(uuid=plan.actions[0].uuid, old=ActionState.PENDING, state=ActionState.ONGOING)
    site.store.commit(plan.uuid, claim, [started], now=NOW)

    def end_commands(uuid):
        gone = site.store.claimant(uuid)
        take_over(site.store, uuid, gone, now=NOW, who="a service")
        site.store.claim_plan(uuid, Claimant(host="elsewhere", pid=8, user="eve"), now=NOW)
        return []

    site.assembly.runner = lambda: SimpleNamespace(end_commands=end_commands)
    plans.cancel(site.assembly, site.operator, site.now(plan), "wrong hosts")
    assert site.now(plan).state is PlanState.ONGOING
    (request,) = site.store.requests(plan.uuid)
    assert (request.verb, request.why) == ("cancel", "wrong hosts")
    (told,) = site.told
    assert "eve on elsewhere, process 8" in told


def test_a_cancel_is_refused_if_the_process_that_seemed_gone_is_heard_of(site):
    plan, claim = site.claimed("a", pid=NO_PROCESS)
    started = Report(uuid=plan.actions[0].uuid, old=ActionState.PENDING, state=ActionState.ONGOING)
    site.store.commit(plan.uuid, claim, [started], now=NOW)

    def end_commands(uuid):
        site.store.beat(uuid, claim, now=NOW + timedelta(seconds=5))
        return []

    site.assembly.runner = lambda: SimpleNamespace(end_commands=end_commands)
    with pytest.raises(PlanConflict, match="sent a heartbeat meanwhile"):
        plans.cancel(site.assembly, site.operator, site.now(plan), None)
    assert site.now(plan).state is PlanState.ONGOING


@pytest.mark.parametrize("state", [PlanState.RECOMMENDED, *ENDED])
def test_a_plan_that_is_deleted_says_by_whom(site, state):
    plan = site.saved("a", state=state)
    removal.delete(site.assembly, site.operator, plan)
    now = site.now(plan)
    assert (now.state, now.status_message) == (PlanState.DELETED, "removed by ada")
    with pytest.raises(PlanConflict):
        removal.delete(site.assembly, site.operator, now)


def test_who_runs_a_plan_is_named_when_it_is_to_be_deleted(site):
    plan, _ = site.claimed("a")
    with pytest.raises(PlanConflict) as refused:
        removal.delete(site.assembly, site.operator, plan)
    assert "eve on elsewhere" in str(refused.value)


def test_other_limits_are_asked_for_while_somebody_runs_the_plan(site):
    plan, _ = site.claimed("a")
    plans.set_limits(site.assembly, site.operator, plan, {"type:nop": 2}, None)
    (request,) = site.store.requests(plan.uuid)
    assert (request.verb, dict(request.limits)) == ("limit", {"type:nop": 2})
    waits = site.saved("a")
    with pytest.raises(PlanConflict):
        plans.set_limits(site.assembly, site.operator, waits, {"type:nop": 2}, None)


def test_a_plan_that_is_resumed_says_what_is_left(site):
    plan = site.saved("a", "b", state=PlanState.CANCELLED)
    plans.resume(site.assembly, site.operator, plan, "again")
    now = site.now(plan)
    assert (now.state, now.status_message) == (PlanState.PENDING, "resumed by ada: again")
    assert re.findall(r"\d+", site.told[0]) == ["0", "0", "2"]
    assert "Run it: actionplan apply" in site.told[-1]


def test_twenty_actions_to_verify_are_named_with_what_is_known_of_them_and_the_rest_is_counted():
    plan = new_plan(*(f"a{i}" for i in range(25)))
    states = [ActionState.SUCCEEDED, ActionState.PENDING, ActionState.FAILED]
    states += [ActionState.ONGOING] * 2 + [ActionState.UNKNOWN] * 20
    known = zip(plan.actions, states, strict=True)
    actions = tuple(replace(a, state=s, status_message="cut off") for a, s in known)
    commands = {actions[4].uuid: "its command runs"}
    told = plans.foreseen(replace(plan, actions=actions), {actions[2].uuid}, commands)
    assert told[0] == "1 action done, 22 to verify first, 2 to do."
    assert told[1].startswith("  to verify  a3: it was running")
    assert told[2] == "  to verify  a4: its command runs"
    assert told[3:21] == [f"  to verify  a{i}: cut off" for i in range(5, 23)]
    assert told[21:] == ["  and 2 more"]
