# SPDX-License-Identifier: Apache-2.0
"""The part of the suite for stores that is about attempts: every try of an action is on record.

See :mod:`applier.testing.stores`, which has the whole.
"""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from applier.contracts import Report
from applier.errors import ActionNotFound, PlanConflict, PlanNotFound
from applier.store import Attempt, Store
from applier.testing.plans import new_plan
from applier.testing.runs import LATER, ME, NOW, claimed, starts, succeeds
from planner.model import Action
from planner.states import ActionState, Outcome, PlanState

AFTERWARDS = LATER + timedelta(minutes=1)


def ends(action: Action, state: ActionState, **facts: Any) -> Report:
    """Report that an ONGOING action ends in any way."""
    return Report(uuid=action.uuid, old=ActionState.ONGOING, state=state, **facts)


def retries(action: Action, **facts: Any) -> Report:
    """Report that an attempt failed and that the action is tried again."""
    return ends(action, ActionState.PENDING, outcome=Outcome.FAILED, **facts)


class AttemptContract:
    """What became of each try, and what tries that did their work tell of the next."""

    def test_an_attempt_is_on_record_from_its_start(self, store: Store) -> None:
        """Its end adds what is known then."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        assert store.attempts(plan.uuid, a.uuid) == []
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        running = Attempt(number=1, started_at=NOW)
        assert store.attempts(plan.uuid, a.uuid) == [running]
        store.commit(plan.uuid, claim, [succeeds(a, message="moved", output="all")], now=LATER)
        ended = replace(
            running,
            ended_at=LATER,
            state=ActionState.SUCCEEDED,
            outcome=Outcome.CHANGED,
            message="moved",
            output="all",
        )
        assert store.attempts(plan.uuid, a.uuid) == [ended]

    def test_an_attempt_that_is_tried_again_failed(self, store: Store) -> None:
        """The action waits, without times and outcome; the message says why."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        store.commit(plan.uuid, claim, [retries(a, message="no route", output="1")], now=LATER)
        (waits,) = store.load_plan(plan.uuid).actions
        assert waits == replace(a, status_message="no route", attempts=1)
        first = Attempt(
            number=1,
            started_at=NOW,
            ended_at=LATER,
            state=ActionState.FAILED,
            outcome=Outcome.FAILED,
            message="no route",
            output="1",
        )
        assert store.attempts(plan.uuid, a.uuid) == [first]
        assert store.output(plan.uuid, a.uuid) == "1"
        store.commit(plan.uuid, claim, [starts(a)], now=AFTERWARDS)
        assert store.attempts(plan.uuid, a.uuid) == [
            first,
            Attempt(number=2, started_at=AFTERWARDS),
        ]
        assert store.output(plan.uuid, a.uuid) is None
        (again,) = store.load_plan(plan.uuid).actions
        assert again == replace(a, state=ActionState.ONGOING, started_at=AFTERWARDS, attempts=2)

    def test_one_batch_may_end_an_attempt_and_start_the_next(self, store: Store) -> None:
        """Each has its own number and times, whatever else is in the batch."""
        plan = new_plan("a", "b")
        a, b = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        batch = [retries(a), starts(b), starts(a), retries(b), starts(b)]
        store.commit(plan.uuid, claim, batch, now=LATER)
        for action, started in ((a, NOW), (b, LATER)):
            first, second = store.attempts(plan.uuid, action.uuid)
            assert (first.number, first.started_at, first.ended_at) == (1, started, LATER)
            assert first.state is ActionState.FAILED
            assert second == Attempt(number=2, started_at=LATER)

    def test_what_is_known_later_does_not_change_an_attempt(self, store: Store) -> None:
        """One that was cut off stays UNKNOWN, though its work is found done."""
        plan = new_plan("a", "b")
        a, b = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a), starts(b)], now=NOW)
        unknown = ActionState.UNKNOWN
        done = Report(
            uuid=a.uuid, old=unknown, state=ActionState.SUCCEEDED, outcome=Outcome.CHANGED
        )
        undone = Report(uuid=b.uuid, old=unknown, state=ActionState.PENDING)
        batch = [ends(a, unknown, message="?"), done, ends(b, unknown), undone]
        store.commit(plan.uuid, claim, batch, now=LATER)
        states = [x.state for x in store.load_plan(plan.uuid).actions]
        assert states == [ActionState.SUCCEEDED, ActionState.PENDING]
        for action in (a, b):
            (attempt,) = store.attempts(plan.uuid, action.uuid)
            assert (attempt.state, attempt.outcome) == (ActionState.UNKNOWN, None)
        assert store.durations(["nop"]) == {"nop": []}

    def test_a_batch_that_does_not_fit_leaves_no_attempt(self, store: Store) -> None:
        """Not of those that would have fitted either."""
        plan = new_plan("a", "b")
        a, b = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        with pytest.raises(PlanConflict, match="is PENDING, not ONGOING"):
            store.commit(plan.uuid, claim, [succeeds(a), succeeds(b)], now=LATER)
        assert store.attempts(plan.uuid, a.uuid) == [Attempt(number=1, started_at=NOW)]
        assert store.attempts(plan.uuid, b.uuid) == []

    def test_attempts_are_counted_over_all_runs(self, store: Store) -> None:
        """A plan that is resumed goes on counting."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        failed = ends(a, ActionState.FAILED, outcome=Outcome.ERROR)
        store.commit(plan.uuid, claim, [starts(a), failed], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.FAILED, now=NOW)
        store.resume_plan(plan.uuid, [a.uuid], now=LATER)
        claim = store.claim_plan(plan.uuid, ME, now=LATER)
        store.commit(plan.uuid, claim, [starts(a)], now=LATER)
        store.commit(plan.uuid, claim, [succeeds(a)], now=AFTERWARDS)
        first, second = store.attempts(plan.uuid, a.uuid)
        assert (first.number, first.outcome) == (1, Outcome.ERROR)
        assert (second.number, second.started_at, second.ended_at) == (2, LATER, AFTERWARDS)

    def test_an_action_that_is_not_there_has_no_attempts(self, store: Store) -> None:
        """It is not found, by the name of what is missing."""
        plan = new_plan("a")
        store.save_plan(plan)
        with pytest.raises(ActionNotFound, match="'none'"):
            store.attempts(plan.uuid, "none")
        with pytest.raises(PlanNotFound, match="'none'"):
            store.attempts("none", "none")

    def test_work_that_was_cut_off_tells_no_duration(self, store: Store) -> None:
        """It is found done by the next claimant, nobody knows since when."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        store.resume_plan(plan.uuid, [], now=LATER)
        claim = store.claim_plan(plan.uuid, ME, now=LATER)
        store.commit(plan.uuid, claim, [succeeds(a)], now=AFTERWARDS)
        assert store.durations(["nop"]) == {"nop": []}

    def test_durations_are_those_of_attempts_that_did_their_work(self, store: Store) -> None:
        """Newest first: in the order in which they ended, whatever the clock said."""
        plan = new_plan(*"abcdef")
        plan = replace(plan, actions=(*plan.actions[:5], replace(plan.actions[5], action_type="x")))
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(action) for action in plan.actions], now=NOW)
        a, b, c, d, e, f = plan.actions
        last = [
            (succeeds(a), 60),
            (succeeds(b, outcome=Outcome.CREATED), 20),
            (succeeds(c, outcome=Outcome.OK), 1),
            (ends(d, ActionState.FAILED, outcome=Outcome.FAILED), 2),
            (succeeds(e), -30),
            (succeeds(f), 0.25),
        ]
        for report, after in last:
            store.commit(plan.uuid, claim, [report], now=NOW + timedelta(seconds=after))
        asked = store.durations(["nop", "x", "none"])
        assert asked == {"nop": [20.0, 60.0], "x": [0.25], "none": []}
        assert store.durations(["x", "nop"], most=2) == {"nop": [20.0], "x": [0.25]}
