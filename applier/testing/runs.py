# SPDX-License-Identifier: Apache-2.0
"""The part of the suite for stores that is about running: claims, commits and requests.

See :mod:`applier.testing.stores`, which has the whole.
"""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from applier.contracts import ActionOf, Claimant, Report, Request
from applier.errors import ActionNotFound, ApplierError, PlanConflict
from applier.store import Store
from applier.testing.plans import MADE, new_plan
from planner.errors import InvalidTransition
from planner.model import Action, ActionPlan
from planner.states import ActionState, Outcome, PlanState

NOW = MADE + timedelta(minutes=1)
LATER = NOW + timedelta(minutes=1)
ME = Claimant(host="db-7", pid=4711, user="wanda")


def starts(action: Action) -> Report:
    """Report that a PENDING action starts."""
    return Report(uuid=action.uuid, old=ActionState.PENDING, state=ActionState.ONGOING)


def succeeds(action: Action, **facts: Any) -> Report:
    """Report that an ONGOING action did its work."""
    facts = {"outcome": Outcome.CHANGED, **facts}
    return Report(uuid=action.uuid, old=ActionState.ONGOING, state=ActionState.SUCCEEDED, **facts)


def claimed(store: Store, plan: ActionPlan) -> str:
    """Save a plan, start it and claim it; gives the token."""
    store.save_plan(plan)
    store.move_plan(plan.uuid, PlanState.PENDING, now=MADE)
    return store.claim_plan(plan.uuid, ME, now=MADE)


def at_once(number: int, call: Callable[[int], Any]) -> list[Any]:
    """Call from several threads at the same moment; gives what each returned, or why it refused."""
    ready = threading.Barrier(number, timeout=30)

    def run(index: int) -> Any:
        ready.wait()
        try:
            return call(index)
        except (ApplierError, InvalidTransition) as refusal:
            return refusal

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(run, range(number)))


class ClaimContract:
    """Who runs a plan, and that nobody else does."""

    def test_a_claim_makes_the_plan_ongoing_and_names_the_claimant(self, store: Store) -> None:
        """Until it is given up."""
        plan = new_plan("a")
        store.save_plan(plan)
        store.move_plan(plan.uuid, PlanState.PENDING, now=MADE)
        assert store.claimant(plan.uuid) is None
        claim = store.claim_plan(plan.uuid, ME, now=NOW)
        loaded = store.load_plan(plan.uuid)
        assert (loaded.state, loaded.updated_at) == (PlanState.ONGOING, NOW)
        assert store.claimant(plan.uuid) == replace(ME, heartbeat_at=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.CANCELLING, now=NOW)
        assert store.claimant(plan.uuid) == replace(ME, heartbeat_at=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.CANCELLED, now=NOW, message="asked to")
        assert store.claimant(plan.uuid) is None
        assert store.load_plan(plan.uuid).status_message == "asked to"

    def test_only_a_plan_that_waits_can_be_claimed(self, store: Store) -> None:
        """Not one that nobody started, and not one that somebody runs."""
        plan = new_plan("a")
        store.save_plan(plan)
        for state in ("RECOMMENDED", "ONGOING"):
            with pytest.raises(PlanConflict, match=state) as refusal:
                store.claim_plan(plan.uuid, ME, now=NOW)
            assert refusal.value.state == state
            if state == "RECOMMENDED":
                store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)
                store.claim_plan(plan.uuid, ME, now=NOW)

    def test_of_many_who_claim_at_once_exactly_one_does(self, store: Store) -> None:
        """And only its token lets it write."""
        for _ in range(5):
            plan = new_plan("a")
            store.save_plan(plan)
            store.move_plan(plan.uuid, PlanState.PENDING, now=MADE)

            def claim(index: int, uuid: str = plan.uuid) -> str:
                return store.claim_plan(uuid, replace(ME, pid=index), now=NOW)

            answers = at_once(4, claim)
            (winner,) = [i for i, answer in enumerate(answers) if isinstance(answer, str)]
            assert all(isinstance(a, PlanConflict) for a in answers if not isinstance(a, str))
            assert store.claimant(plan.uuid) == replace(ME, pid=winner, heartbeat_at=NOW)
            store.commit(plan.uuid, answers[winner], [starts(plan.actions[0])], now=NOW)

    def test_a_plan_that_was_given_up_takes_no_writes_with_the_old_token(
        self, store: Store
    ) -> None:
        """Not while it waits, and not when somebody else runs it."""
        plan = new_plan("a")
        old = claimed(store, plan)
        store.move_claimed(plan.uuid, old, PlanState.PAUSED, now=NOW)
        for state in ("PAUSED", "ONGOING"):
            with pytest.raises(PlanConflict, match=state) as refusal:
                store.commit(plan.uuid, old, [starts(plan.actions[0])], now=LATER)
            assert refusal.value.state == state
            with pytest.raises(PlanConflict, match=state):
                store.move_claimed(plan.uuid, old, PlanState.FAILED, now=LATER)
            with pytest.raises(PlanConflict, match=state):
                store.commit(plan.uuid, old, [], now=LATER)
            if state == "PAUSED":
                store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)
                assert store.claim_plan(plan.uuid, ME, now=NOW) != old
        loaded = store.load_plan(plan.uuid)
        assert loaded.actions == plan.actions
        assert loaded.updated_at == NOW

    def test_a_claimant_moves_its_plan_by_the_table_of_states_too(self, store: Store) -> None:
        """An operator's moves are not its own."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        for new in (PlanState.CANCELLED, PlanState.DELETED, PlanState.RECOMMENDED):
            with pytest.raises(InvalidTransition, match="is ONGOING"):
                store.move_claimed(plan.uuid, claim, new, now=NOW)
        with pytest.raises(InvalidTransition, match="is ONGOING"):
            store.move_plan(plan.uuid, PlanState.DELETED, now=NOW)
        for new in (PlanState.PENDING, PlanState.PAUSED, PlanState.CANCELLED):
            with pytest.raises(PlanConflict, match=r"somebody runs it; .* resume the plan"):
                store.move_plan(plan.uuid, new, now=NOW)
        assert store.load_plan(plan.uuid).state is PlanState.ONGOING
        assert store.load_plan(plan.uuid).actions == plan.actions


class CommitContract:
    """The record of a run: all of a batch or nothing, and only from the state that was seen."""

    def test_a_start_and_an_end_set_their_times(self, store: Store) -> None:
        """A start counts an attempt; an end keeps when it started."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        loaded = store.load_plan(plan.uuid)
        (running,) = loaded.actions
        assert running == replace(a, state=ActionState.ONGOING, started_at=NOW, attempts=1)
        assert loaded.updated_at == NOW
        end = succeeds(a, message="moved", output="all of it")
        store.commit(plan.uuid, claim, [end], now=LATER)
        loaded = store.load_plan(plan.uuid)
        assert loaded.actions == (
            replace(
                running,
                state=ActionState.SUCCEEDED,
                outcome=Outcome.CHANGED,
                status_message="moved",
                ended_at=LATER,
            ),
        )
        assert loaded.updated_at == LATER
        assert store.output(plan.uuid, a.uuid) == "all of it"

    def test_what_does_not_run_has_no_start_on_record(self, store: Store) -> None:
        """It ends, though."""
        plan = new_plan("a")
        (a,) = plan.actions
        claim = claimed(store, plan)
        failed = ActionState.FAILED_DEPENDENCIES
        report = Report(uuid=a.uuid, old=ActionState.PENDING, state=failed, message="b failed")
        store.commit(plan.uuid, claim, [report], now=NOW)
        assert store.load_plan(plan.uuid).actions == (
            replace(a, state=failed, status_message="b failed", ended_at=NOW),
        )

    def test_a_batch_is_written_in_its_order(self, store: Store) -> None:
        """Ends first, then what they let start; one action may start and end in it."""
        plan = new_plan("a", "b", "c")
        a, b, c = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a)], now=NOW)
        store.commit(plan.uuid, claim, [succeeds(a), starts(b), succeeds(b), starts(c)], now=LATER)
        states = [x.state for x in store.load_plan(plan.uuid).actions]
        assert states == [ActionState.SUCCEEDED, ActionState.SUCCEEDED, ActionState.ONGOING]

    def test_a_report_that_does_not_fit_leaves_nothing_of_its_batch(self, store: Store) -> None:
        """The refusal names the action, the state it has and the one it should have had."""
        plan = new_plan("a", "b", "c", "d")
        a, b, c, _ = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a), starts(b)], now=NOW)
        before = store.load_plan(plan.uuid)
        batch = [succeeds(a, output="a"), starts(b), starts(c)]
        with pytest.raises(PlanConflict, match=f"{b.uuid} .* is ONGOING, not PENDING"):
            store.commit(plan.uuid, claim, batch, now=LATER)
        unknown = replace(starts(c), uuid="none")
        with pytest.raises(ActionNotFound, match="'none'"):
            store.commit(plan.uuid, claim, [succeeds(a), unknown, starts(c)], now=LATER)
        again = Report(uuid=c.uuid, old=ActionState.SUCCEEDED, state=ActionState.ONGOING)
        with pytest.raises(InvalidTransition):
            store.commit(plan.uuid, claim, [succeeds(a), again], now=LATER)
        with pytest.raises(PlanConflict):
            store.commit(plan.uuid, claim, [starts(c), starts(c)], now=LATER)
        assert store.load_plan(plan.uuid) == before
        assert store.output(plan.uuid, a.uuid) is None

    def test_a_batch_is_not_written_twice(self, store: Store) -> None:
        """Though it is the very same, at the very same time."""
        plan = new_plan("a")
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        with pytest.raises(PlanConflict):
            store.commit(plan.uuid, claim, [starts(plan.actions[0])], now=NOW)
        assert store.load_plan(plan.uuid).actions[0].attempts == 1

    def test_a_commit_with_another_claim_writes_nothing(self, store: Store) -> None:
        """The actions may be as expected: the plan is not this one's."""
        plan = new_plan("a")
        claimed(store, plan)
        before = store.load_plan(plan.uuid)
        with pytest.raises(PlanConflict, match="claim"):
            store.commit(plan.uuid, "another", [starts(plan.actions[0])], now=NOW)
        assert store.load_plan(plan.uuid) == before

    def test_the_end_of_a_long_output_is_kept(self, store: Store) -> None:
        """64 KiB of UTF-8, in whole characters, and nothing in it is a reason to refuse it."""
        plan = new_plan("a", "b", "c")
        a, b, c = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(x) for x in plan.actions], now=NOW)
        long = "start " + "\N{GRINNING FACE}" * 20_000 + " end"
        odd = "a\0b\ud800c \N{SNOWMAN} 'quoted' \\ %s :name"
        ends = [succeeds(a, output=long), succeeds(b, output=odd, message=odd), succeeds(c)]
        store.commit(plan.uuid, claim, ends, now=LATER)
        text = store.output(plan.uuid, a.uuid)
        assert text == "\N{GRINNING FACE}" * ((64 * 1024 - 4) // 4) + " end"
        shown = "a\N{REPLACEMENT CHARACTER}b?c \N{SNOWMAN} 'quoted' \\ %s :name"
        assert store.output(plan.uuid, b.uuid) == shown
        assert store.load_plan(plan.uuid).actions[1].status_message == shown
        assert store.output(plan.uuid, c.uuid) is None
        with pytest.raises(ActionNotFound):
            store.output(plan.uuid, "none")

    def test_a_revert_tells_what_became_of_what_it_undid(self, store: Store) -> None:
        """In the same commit: of what still stands, and of nothing else."""
        plan = new_plan(*"abcde")
        stands, fails, doubtful, failed, other = plan.actions
        claim = claimed(store, plan)
        store.commit(plan.uuid, claim, [starts(a) for a in plan.actions], now=NOW)
        ends = [succeeds(a) for a in (stands, fails, doubtful, other)]
        ends.append(replace(succeeds(failed), state=ActionState.FAILED, outcome=Outcome.FAILED))
        store.commit(plan.uuid, claim, ends, now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.FAILED, now=NOW)
        before = store.load_plan(plan.uuid)

        rollback = new_plan(*"abcde")
        claim = claimed(store, rollback)
        store.commit(rollback.uuid, claim, [starts(a) for a in rollback.actions], now=LATER)
        ends = [
            succeeds(rollback.actions[0]),
            replace(succeeds(rollback.actions[1]), state=ActionState.FAILED, message="no route"),
            replace(succeeds(rollback.actions[2]), state=ActionState.UNKNOWN, message="cut off"),
            succeeds(rollback.actions[3]),
            succeeds(rollback.actions[4]),
        ]
        undoes = [ActionOf(plan.uuid, a.uuid) for a in (stands, fails, doubtful, failed)]
        ends = [
            *(replace(r, undoes=u) for r, u in zip(ends, undoes, strict=False)),
            replace(ends[4], undoes=ActionOf("gone", other.uuid)),
        ]
        store.commit(rollback.uuid, claim, ends, now=LATER)
        found = store.load_plan(plan.uuid)
        assert [a.state for a in found.actions] == [
            ActionState.REVERTED,
            ActionState.REVERT_FAILED,
            ActionState.REVERT_FAILED,
            ActionState.FAILED,
            ActionState.SUCCEEDED,
        ]
        short = rollback.uuid[:8]
        assert [a.status_message for a in found.actions[:3]] == [
            f"undone (rollback plan {short})",
            f"not undone, no route (rollback plan {short})",
            f"not undone, cut off (rollback plan {short})",
        ]
        assert [(a.outcome, a.ended_at) for a in found.actions] == [
            (a.outcome, a.ended_at) for a in before.actions
        ]

    def test_several_plans_run_at_once(self, store: Store) -> None:
        """Each in its own thread, without losing a report."""
        several = [new_plan(*map(str, range(12))) for _ in range(4)]
        claims = [claimed(store, plan) for plan in several]

        def run(index: int) -> None:
            plan, claim = several[index], claims[index]
            for action in plan.actions:
                store.commit(plan.uuid, claim, [starts(action)], now=NOW)
                store.commit(plan.uuid, claim, [succeeds(action)], now=LATER)
            store.move_claimed(plan.uuid, claim, PlanState.SUCCEEDED, now=LATER)

        assert at_once(4, run) == [None] * 4
        listed = store.list_plans(state=PlanState.SUCCEEDED)
        assert [dict(s.actions) for s in listed] == [{ActionState.SUCCEEDED: 12}] * 4


class RequestContract:
    """What operators ask of a running plan."""

    def test_requests_are_numbered_and_listed_from_where_one_stopped(self, store: Store) -> None:
        """Per plan, from 1, oldest first."""
        plan, other = new_plan("a"), new_plan("b")
        claimed(store, plan)
        claimed(store, other)
        assert store.requests(plan.uuid) == []
        skip = Request(verb="skip", who="wanda", why="by hand", action=plan.actions[0].uuid)
        cancel = Request(verb="cancel", who="otto")
        store.add_request(plan.uuid, skip, now=NOW)
        store.add_request(other.uuid, cancel, now=NOW)
        store.add_request(plan.uuid, cancel, now=LATER)
        first = replace(skip, number=1, created_at=NOW)
        second = replace(cancel, number=2, created_at=LATER)
        assert store.requests(plan.uuid) == [first, second]
        assert store.requests(plan.uuid, after=1) == [second]
        assert store.requests(plan.uuid, after=2) == []
        assert [request.number for request in store.requests(other.uuid)] == [1]

    def test_a_plan_that_nobody_runs_takes_no_requests(self, store: Store) -> None:
        """Nobody would read them; those that were made stay to be read."""
        plan = new_plan("a")
        store.save_plan(plan)
        request = Request(verb="cancel", who="wanda")
        with pytest.raises(PlanConflict, match="RECOMMENDED"):
            store.add_request(plan.uuid, request, now=NOW)
        store.move_plan(plan.uuid, PlanState.PENDING, now=NOW)
        claim = store.claim_plan(plan.uuid, ME, now=NOW)
        store.add_request(plan.uuid, request, now=NOW)
        store.move_claimed(plan.uuid, claim, PlanState.PAUSED, now=NOW)
        with pytest.raises(PlanConflict, match="PAUSED"):
            store.add_request(plan.uuid, request, now=NOW)
        assert [request.number for request in store.requests(plan.uuid)] == [1]

    def test_a_request_for_limits_keeps_them(self, store: Store) -> None:
        """As they were asked for, to whoever reads them."""
        plan = new_plan("a")
        claimed(store, plan)
        limits = {"type:migrate": 1, "node:*": 2, "max_workers": 8}
        store.add_request(plan.uuid, Request(verb="limit", who="wanda", limits=limits), now=NOW)
        (request,) = store.requests(plan.uuid)
        assert dict(request.limits) == limits
        assert (request.who, request.created_at) == ("wanda", NOW)

    def test_requests_made_at_once_get_different_numbers(self, store: Store) -> None:
        """None is lost."""
        plan = new_plan("a")
        claimed(store, plan)

        def add(index: int) -> None:
            for number in range(5):
                request = Request(verb="skip", who=f"{index}", why=f"{number}")
                store.add_request(plan.uuid, request, now=NOW)

        assert at_once(4, add) == [None] * 4
        requests = store.requests(plan.uuid)
        assert [request.number for request in requests] == list(range(1, 21))
        assert {(w.who, w.why) for w in requests} == {
            (str(i), str(n)) for i in range(4) for n in range(5)
        }
