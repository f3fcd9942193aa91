# SPDX-License-Identifier: Apache-2.0
"""Checks that every attempt of an action is recorded."""

# Tests are assertions.

from __future__ import annotations

from dataclasses import replace

from refusal_checks import refused
from sample_plans import new_plan

from applier.contracts import Report
from applier.errors import ActionNotFound, PlanNotFound
from applier.storage.sql_store import SqlStore
from applier.store import Attempt
from planner.plan.states import ActionState, Outcome, PlanState
from store_checks.running_plans import (
    AFTERWARDS,
    LATER,
    ME,
    NOW,
    RunStoreUnderTest,
    claimed,
    ends,
    retries,
    starts,
    succeeds,
)


class AllAttemptsChecks:
    """Checks of ``all_attempts``, which returns the attempts of all actions of a plan."""

    def test_all_attempts_are_by_action_with_the_ends_of_their_outputs(
        self, store: SqlStore
    ) -> None:
        """Only ended attempts are returned, with the last ``most`` characters of their outputs."""
        plan, other = new_plan("a", "b"), new_plan("c")
        a, b = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a), starts(b)], now=NOW)
        store.commit(plan.uuid, claim, [retries(a, message="no", output="12345")], now=LATER)
        again = replace(a, state=ActionState.PENDING, attempts=1)
        store.commit(plan.uuid, claim, [starts(again)], now=LATER)
        store.commit(plan.uuid, claim, [succeeds(a, output="abc")], now=AFTERWARDS)
        store.save_plan(other)
        assert store.all_attempts(other.uuid, most=3) == {}
        found = store.all_attempts(plan.uuid, most=3)
        assert {uuid: [one.output for one in tried] for uuid, tried in found.items()} == {
            a.uuid: ["345", "abc"]
        }
        whole = store.all_attempts(plan.uuid, most=5)
        assert whole[a.uuid] == store.attempts(plan.uuid, a.uuid)

    def test_the_attempts_of_an_unknown_plan_are_refused(self, store: SqlStore) -> None:
        """PlanNotFound is raised."""
        with refused(PlanNotFound):
            store.all_attempts("nope", most=1)


class AttemptChecks:
    """Start, end, outcome and output of attempts."""

    def test_an_attempt_is_on_record_from_its_start(self, store: RunStoreUnderTest) -> None:
        """The start creates the attempt; the end adds time, state, outcome, message and output."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        assert store.attempts(plan.uuid, a.uuid) == []
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        running = Attempt(number=1, started_at=NOW)
        assert store.attempts(plan.uuid, a.uuid) == [running]
        store.commit(plan.uuid, claim, [succeeds(a, message="moved", output="all")], now=LATER)
        ended = running._replace(
            ended_at=LATER,
            state=ActionState.SUCCEEDED,
            outcome=Outcome.CHANGED,
            message="moved",
            output="all",
        )
        assert store.attempts(plan.uuid, a.uuid) == [ended]

    def test_an_attempt_that_is_tried_again_failed(self, store: RunStoreUnderTest) -> None:
        """The action is PENDING without times and outcome, with the message of the attempt."""
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
        store.commit(plan.uuid, claim, [starts(a)], now=AFTERWARDS)
        assert store.attempts(plan.uuid, a.uuid) == [
            first,
            Attempt(number=2, started_at=AFTERWARDS),
        ]
        (again,) = store.load_plan(plan.uuid).actions
        assert again == replace(a, state=ActionState.ONGOING, started_at=AFTERWARDS, attempts=2)

    def test_one_batch_may_end_an_attempt_and_start_the_next(
        self, store: RunStoreUnderTest
    ) -> None:
        """Each attempt has its own number and times."""
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

    def test_what_is_known_later_does_not_change_an_attempt(self, store: RunStoreUnderTest) -> None:
        """An interrupted attempt stays UNKNOWN, even if its work is later found done."""
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

    def test_an_attempt_in_doubt_goes_on_as_the_same_attempt(
        self, store: RunStoreUnderTest
    ) -> None:
        """The action is ONGOING again; the attempt keeps its start and number, and has no end."""
        plan = new_plan("a", "b")
        a, b = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a), retries(a), starts(a), starts(b)], now=NOW)
        unknown = ActionState.UNKNOWN
        store.commit(plan.uuid, claim, [ends(a, unknown), ends(b, unknown)], now=LATER)
        found = Report(uuid=a.uuid, old=unknown, state=ActionState.ONGOING, message="found")
        store.commit(plan.uuid, claim, [found], now=AFTERWARDS)
        again, other = store.load_plan(plan.uuid).actions
        assert (again.state, again.attempts) == (ActionState.ONGOING, 2)
        assert (again.started_at, again.ended_at) == (NOW, None)
        assert (again.status_message, other.state) == ("found", unknown)
        first, second = store.attempts(plan.uuid, a.uuid)
        assert (first.number, first.state) == (1, ActionState.FAILED)
        assert second == Attempt(number=2, started_at=NOW)
        assert len(store.attempts(plan.uuid, b.uuid)) == 1
        store.commit(plan.uuid, claim, [succeeds(a, output="all")], now=AFTERWARDS)
        _, second = store.attempts(plan.uuid, a.uuid)
        assert (second.number, second.started_at, second.ended_at) == (2, NOW, AFTERWARDS)
        assert (second.state, second.output) == (ActionState.SUCCEEDED, "all")

    def test_who_ran_a_plan_last_is_known_after_its_claim_has_ended(
        self, store: RunStoreUnderTest
    ) -> None:
        """``last_claimant`` returns its host, process and user: commands may still run there."""
        plan = new_plan("a")
        store.save_plan(replace(plan, state=PlanState.PENDING))
        assert store.last_claimant(plan.uuid) is None
        claim = store.claim_plan(plan.uuid, ME, now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PENDING, now=LATER)
        last = store.last_claimant(plan.uuid)
        assert last is not None
        assert (last.host, last.pid, last.user) == (ME.host, ME.pid, ME.user)

    def test_attempts_are_counted_over_all_runs(self, store: RunStoreUnderTest) -> None:
        """Under the next claim of a plan, the numbers continue."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a), retries(a)], now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PENDING, now=NOW)
        claim = store.claim_plan(plan.uuid, ME, now=LATER)
        store.commit(plan.uuid, claim, [starts(a)], now=LATER)
        store.commit(plan.uuid, claim, [succeeds(a)], now=AFTERWARDS)
        first, second = store.attempts(plan.uuid, a.uuid)
        assert (first.number, first.state) == (1, ActionState.FAILED)
        assert (second.number, second.started_at, second.ended_at) == (2, LATER, AFTERWARDS)

    def test_the_end_of_a_long_output_is_kept(self, store: RunStoreUnderTest) -> None:
        """The last 64 KiB of UTF-8 are stored, in whole characters; no character is refused."""
        plan = new_plan("a", "b", "c")
        a, b, c = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(x) for x in plan.actions], now=NOW)
        long = "start " + "\N{GRINNING FACE}" * 20_000 + " end"
        odd = "a\0b\ud800c \N{SNOWMAN} 'quoted' \\ %s :name"
        ends = [succeeds(a, output=long), succeeds(b, output=odd, message=odd), succeeds(c)]
        store.commit(plan.uuid, claim, ends, now=LATER)
        text = store.attempts(plan.uuid, a.uuid)[-1].output
        assert text == "\N{GRINNING FACE}" * ((64 * 1024 - 4) // 4) + " end"
        shown = "a\N{REPLACEMENT CHARACTER}b?c \N{SNOWMAN} 'quoted' \\ %s :name"
        assert store.attempts(plan.uuid, b.uuid)[-1].output == shown
        assert store.load_plan(plan.uuid).actions[1].status_message == shown
        assert store.attempts(plan.uuid, c.uuid)[-1].output is None

    def test_an_action_that_is_not_there_has_no_attempts(self, store: RunStoreUnderTest) -> None:
        """ActionNotFound names the action that is missing."""
        plan = new_plan("a")
        store.save_plan(plan)
        with refused(ActionNotFound, reference="none"):
            store.attempts(plan.uuid, "none")
