# SPDX-License-Identifier: Apache-2.0
"""What becomes of a plan whose applier is known to be gone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sample_plans import new_plan

from applier.contracts import Claimant, Report, Request
from applier.errors import PlanConflict
from applier.run.resume import DEATHS, resume, take_over
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import ActionState, Outcome, PlanState

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(minutes=10)
S = ActionState


class Claimed:
    """A plan of two actions that an applier runs, which then dies."""

    def __init__(self, store, **fields) -> None:
        self.store = store
        self.plan = replace(new_plan("a", "b", state=PlanState.PENDING), **fields)
        self.store.save_plan(self.plan)
        self.uuid, self.first = self.plan.uuid, self.plan.actions[0].uuid
        self.claim = ""
        self.go()

    def go(self, pid: int = 7) -> None:
        claimant = Claimant(host="c1", pid=pid, user="wanda")
        self.claim = self.store.claim_plan(self.uuid, claimant, now=NOW)

    def change(self, old: S, new: S, outcome=None) -> None:
        report = Report(uuid=self.first, old=old, state=new, outcome=outcome)
        self.store.commit(self.uuid, self.claim, [report], now=NOW)

    def ask(self, verb: str, at: datetime = NOW) -> None:
        self.store.add_request(self.uuid, Request(verb=verb, who="ann"), now=at)

    def taken_over(self) -> tuple[str, str]:
        claimant = self.store.claimant(self.uuid)
        state = take_over(self.store, self.uuid, claimant, now=LATER, who="c2")
        plan = self.store.load_plan(self.uuid)
        assert plan.state is state
        return str(state), plan.status_message

    def die_while_it_runs(self, outcome=Outcome.ERROR) -> None:
        """End an attempt that was cut off, as whoever takes the plan over records it."""
        self.change(S.PENDING, S.ONGOING)
        self.change(S.ONGOING, S.PENDING, outcome)


GONE = "process 7 on c1, which ran it, is gone; "


@pytest.fixture
def claimed(store):
    return Claimed(store)


def test_it_waits_for_another_applier(claimed):
    claimed.change(S.PENDING, S.ONGOING)
    assert claimed.taken_over() == ("PENDING", GONE + "resumed by c2")
    assert claimed.store.load_plan(claimed.uuid).actions[0].state is S.ONGOING


def test_a_cancel_that_was_under_way_is_finished(claimed):
    claimed.store.move_claimed(claimed.uuid, claimed.claim, PlanState.CANCELLING, now=NOW)
    assert claimed.taken_over() == ("CANCELLED", GONE + "its cancel was finished by c2")


@pytest.mark.parametrize(
    ("verbs", "state"),
    [
        (["pause"], "PAUSED"),
        (["cancel"], "CANCELLED"),
        (["pause", "cancel"], "CANCELLED"),
        (["cancel", "pause"], "CANCELLED"),
        (["skip", "limit"], "PENDING"),
    ],
)
def test_a_request_that_it_did_not_get_to_read_is_carried_out(claimed, verbs, state):
    for verb in verbs:
        claimed.ask(verb)
    found, message = claimed.taken_over()
    assert found == state
    if state != "PENDING":
        verb = min(verbs)
        told = f"{verb}, requested by ann, was carried out by c2"
        assert message == GONE + told


@pytest.mark.parametrize("clock_is_ahead", [timedelta(days=-1), timedelta(), timedelta(days=1)])
def test_a_request_of_an_earlier_run_is_not_carried_out(claimed, clock_is_ahead):
    claimed.ask("pause", NOW + clock_is_ahead)
    claimed.store.move_claimed(claimed.uuid, claimed.claim, PlanState.PENDING, now=NOW)
    claimed.go()
    assert claimed.taken_over()[0] == "PENDING"


@pytest.mark.parametrize("clock_is_ahead", [timedelta(days=-1), timedelta(), timedelta(days=1)])
def test_a_request_of_this_run_is_carried_out_whatever_the_clock_of_the_operator_says(
    claimed, clock_is_ahead
):
    """Its applier may have sent a heartbeat, and started an action, after it."""
    claimed.ask("pause", NOW + clock_is_ahead)
    claimed.change(S.PENDING, S.ONGOING)
    claimed.store.beat(claimed.uuid, claimed.claim, now=NOW + timedelta(seconds=9))
    assert claimed.taken_over()[0] == "PAUSED"


@pytest.mark.parametrize(
    ("deaths", "state"), [(DEATHS - 2, "PENDING"), (DEATHS - 1, "PAUSED"), (DEATHS, "PAUSED")]
)
def test_what_was_cut_off_again_and_again_is_left_to_an_operator(claimed, deaths, state):
    """The attempt that runs has no end on record yet."""
    for _ in range(deaths):
        claimed.die_while_it_runs()
    claimed.change(S.PENDING, S.ONGOING)
    found, message = claimed.taken_over()
    assert found == state
    if state == "PAUSED":
        assert f"interrupted {DEATHS} times" in message
        assert "paused by c2" in message


def test_a_plan_whose_applier_died_before_it_paused_for_its_canary_is_paused(store):
    """The first node has ended well, and nobody has looked at it."""
    token = "serial:p"  # noqa: S105
    for first, state in ((S.SUCCEEDED, "PAUSED"), (S.FAILED, "PENDING")):
        a, b = new_plan("a", "b").actions
        nodes = [replace(x, places=(HeldPlace(token, x.name),), parents=()) for x in (a, b)]
        rules = {token: PlaceRule(pause_after=1)}
        claimed = Claimed(store, actions=tuple(nodes), places=rules, limits={token: 1})
        claimed.change(S.PENDING, S.ONGOING)
        claimed.change(S.ONGOING, first)
        assert claimed.taken_over()[0] == state


def test_attempts_that_failed_by_themselves_kill_nobody(claimed):
    for outcome in [Outcome.FAILED] * DEATHS:
        claimed.die_while_it_runs(outcome)
    claimed.change(S.PENDING, S.ONGOING)
    assert claimed.taken_over()[0] == "PENDING"


def test_a_claimant_that_wrote_a_heartbeat_meanwhile_keeps_its_plan(claimed):
    seen = claimed.store.claimant(claimed.uuid)
    claimed.store.beat(claimed.uuid, claimed.claim, now=LATER)
    with pytest.raises(PlanConflict):
        take_over(claimed.store, claimed.uuid, seen, now=LATER, who="c2")
    assert claimed.store.load_plan(claimed.uuid).state is PlanState.ONGOING


def test_a_refusal_names_the_plan_by_the_beginning_of_its_uuid(claimed):
    known = {"clock": lambda: NOW, "who": "otto"}
    beat = partial(claimed.store.beat, claimed.uuid, claimed.claim, now=LATER)
    with pytest.raises(PlanConflict, match=f"plan {claimed.uuid[:8]} is ONGOING: wanda runs it"):
        resume(claimed.store, claimed.uuid, wait=lambda _: beat(), **known)
    claimed.store.move_claimed(claimed.uuid, claimed.claim, PlanState.SUCCEEDED, now=NOW)
    with pytest.raises(PlanConflict, match=f"plan {claimed.uuid[:8]} is SUCCEEDED: nothing"):
        resume(claimed.store, claimed.uuid, **known)


@pytest.mark.parametrize("asked", [None, "pause", "cancel"])
def test_who_loses_the_race_for_the_plan_of_a_dead_applier_is_told_so(store, asked):
    """Another service took it over a moment before, and may have claimed it as well."""
    for meanwhile in (PlanState.PENDING, PlanState.PAUSED, PlanState.CANCELLED, PlanState.ONGOING):
        for cancelling in (False, True):
            # A plan that is being cancelled is not paused.
            if not cancelling or meanwhile is not PlanState.PAUSED:
                require_told(Claimed(store), asked, meanwhile, cancelling=cancelling)


def require_told(claimed, asked, meanwhile, *, cancelling):
    """Take a plan over a moment after another service did."""
    if asked:
        claimed.ask(asked)
    if cancelling:
        claimed.store.move_claimed(claimed.uuid, claimed.claim, PlanState.CANCELLING, now=NOW)
    seen, load = claimed.store.claimant(claimed.uuid), claimed.store.requests
    plan = claimed.store.load_plan(claimed.uuid)
    new = PlanState.PENDING if meanwhile is PlanState.ONGOING else meanwhile

    def other_is_faster(*_):
        claimed.store.requests = load
        if new is PlanState.PENDING:
            claimed.store.resume_plan(claimed.uuid, [], now=NOW, seen=seen)
        else:
            claimed.store.move_plan(claimed.uuid, new, now=NOW, seen=seen)
        if meanwhile is PlanState.ONGOING:
            claimed.go(pid=8)
        return plan

    claimed.store.load_plan = other_is_faster
    with pytest.raises(PlanConflict, match="its claimant has changed"):
        take_over(claimed.store, claimed.uuid, seen, now=LATER, who="c2")
    del claimed.store.load_plan
    assert claimed.store.load_plan(claimed.uuid).state is meanwhile
