# SPDX-License-Identifier: Apache-2.0
"""What every workflow engine has to do right, as tests that any project can run on its own.

In a test module, with pytest::

    from applier.testing.engines import EngineContract

    class TestMyEngine(EngineContract):
        def make_engine(self, max_workers):
            return MyEngine(max_workers=max_workers)
"""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest

from applier.contracts import ActionContext, Report, Request, StopSignal
from applier.engines import Engine
from applier.errors import ActionFailed, AlreadyDone, PlanConflict, StoreError
from applier.testing.random_plans import carry_out, expected_ends, random_fate, random_plan
from applier.testing.trials import Trial, Work, changed
from planner.model import JOIN, Action, ActionPlan
from planner.states import ActionState, Outcome, PlanState

#: Seconds after which a test that waits for other threads gives up.
PATIENCE_S = 20.0


class EngineContract:
    """Tests of one engine, which :meth:`make_engine` makes."""

    @abstractmethod
    def make_engine(self, max_workers: int) -> Engine:
        """Return an engine that runs up to ``max_workers`` actions at once."""

    @pytest.fixture(autouse=True)
    def _close_trials(self) -> Iterator[None]:
        with ExitStack() as self._trials:
            yield

    def trial(
        self, plan: ActionPlan, work: Work = changed, *, max_workers: int = 4, **options: Any
    ) -> Trial:
        """Return a trial of a plan with the engine; it is closed after the test."""
        engine = self.make_engine(max_workers)
        trial = Trial(plan, engine, work, max_workers=max_workers, **options)
        return self._trials.enter_context(trial)

    def test_random_plans_end_as_the_rules_say(self) -> None:
        """Whatever the threads do, each action ends as if they ran one after another."""
        for seed in range(30):
            plan, fate = random_plan(seed), random_fate(seed)
            trial = self.trial(plan, _fated(seed))
            trial.run()
            assert trial.store.ends == expected_ends(plan, fate), f"plan {seed}"

    def test_exactly_max_workers_run_at_once(self) -> None:
        """Each action waits until as many are inside as may be; counted inside the actions."""
        meeting = _Meeting(3)
        plan = _plan(*(Action(uuid=f"a{i}", action_type="nop") for i in range(12)))
        trial = self.trial(plan, meeting.work, max_workers=3)
        assert trial.run() is PlanState.SUCCEEDED
        assert (meeting.peak, trial.store.peak) == (3, 3)

    def test_exactly_the_limit_of_a_token_run_at_once(self) -> None:
        """With workers to spare, a limit of two lets two in, never a third."""
        meeting = _Meeting(2)
        members = [Action(uuid=f"a{i}", action_type="nop", tokens=("node:1",)) for i in range(8)]
        trial = self.trial(_plan(*members, limits={"node:*": 2}), meeting.work, max_workers=8)
        assert trial.run() is PlanState.SUCCEEDED
        assert (meeting.peak, trial.store.peak) == (2, 2)

    def test_a_failed_action_never_lets_through_what_needs_it(self) -> None:
        """Directly or through others and joins; what only comes after it goes on."""
        trial = self.trial(_FAMILY, _failing("a"))
        assert trial.run() is PlanState.FAILED
        assert trial.states() == {
            "a": "FAILED",
            "child": "FAILED_DEPENDENCIES",
            "join": "FAILED_DEPENDENCIES",
            "grandchild": "FAILED_DEPENDENCIES",
            "neighbour": "SUCCEEDED",
        }
        assert trial.plan().status_message == "1 succeeded, 1 failed, 2 not run because of it"
        assert "because of a" in (trial.messages()["grandchild"] or "")

    def test_with_continue_it_does(self) -> None:
        """The failure is on record, and stops nothing."""
        trial = self.trial(_FAMILY, _failing("a"), on_failure="continue")
        trial.store.needed = False
        assert trial.run() is PlanState.FAILED
        assert {u for u, s in trial.states().items() if s != "SUCCEEDED"} == {"a"}

    def test_the_plan_decides_what_a_failure_does_before_the_applier(self) -> None:
        """``on_failure`` of the plan wins."""
        plan = _plan(*_FAMILY.actions, on_failure="continue")
        trial = self.trial(plan, _failing("a"), on_failure="skip_descendants")
        trial.run()
        assert trial.states()["grandchild"] == "SUCCEEDED"

    def test_a_join_is_on_record_without_a_worker(self) -> None:
        """It ends in the commit of the turn in which all before it has ended."""
        trial = self.trial(_FAMILY)
        assert trial.run() is PlanState.SUCCEEDED
        assert trial.states()["join"] == "SUCCEEDED"
        assert "join" not in trial.store.started

    def test_what_a_plugin_raises_costs_its_own_action_only(self) -> None:
        """Nor does SystemExit end a worker."""
        for error in (ValueError("no such thing"), SystemExit(3), KeyboardInterrupt()):
            trial = self.trial(_pair(), _raising("a", error), max_workers=1)
            assert trial.run() is PlanState.FAILED
            (failed, other) = trial.plan().actions
            assert (failed.state, failed.outcome) == (ActionState.FAILED, Outcome.ERROR)
            assert type(error).__name__ in (failed.status_message or "")
            assert other.state is ActionState.SUCCEEDED

    def test_what_is_done_already_is_skipped_and_lets_through(self) -> None:
        """An action that finds nothing to do ends well."""
        trial = self.trial(_chain(), _raising("a", AlreadyDone("it is there")))
        assert trial.run() is PlanState.SUCCEEDED
        assert trial.states() == {"a": "SKIPPED", "b": "SUCCEEDED", "c": "SUCCEEDED"}
        assert trial.messages()["a"] == "it is there"

    def test_a_cancel_before_the_start_lets_nothing_start(self) -> None:
        """The request may be there before the plan runs."""
        trial = self.trial(_chain())
        trial.runner.cancel("ann", "enough")
        assert trial.run() is PlanState.CANCELLED
        assert not trial.store.started
        assert set(trial.states().values()) == {"CANCELLED"}
        assert "ann: enough" in (trial.messages()["a"] or "")

    def test_a_cancel_stops_what_runs_and_awaits_it(self) -> None:
        """It comes through the record; the plan is CANCELLING meanwhile."""
        trial = self.trial(_chain(), request_interval_s=0.001)
        seen: list[PlanState] = []

        def work(
            _parameters: Mapping[str, Any], _context: ActionContext, stop: StopSignal
        ) -> Outcome:
            trial.store.add_request(trial.uuid, Request(verb="cancel", who="ann"), now=_now())
            assert stop.wait(PATIENCE_S), "it was not told to stop"
            seen.append(trial.plan().state)
            raise ActionFailed("stopped half-way")

        trial.work = work
        assert trial.run() is PlanState.CANCELLED
        assert seen == [PlanState.CANCELLING]
        assert trial.states() == {"a": "CANCELLED", "b": "CANCELLED", "c": "CANCELLED"}
        assert trial.messages()["a"] == "aborted: stopped half-way"

    def test_an_action_that_ends_well_after_a_cancel_has_succeeded(self) -> None:
        """What is done is done."""
        trial = self.trial(_chain())
        trial.work = _then(trial.runner.cancel)
        assert trial.run() is PlanState.CANCELLED
        assert trial.states() == {"a": "SUCCEEDED", "b": "CANCELLED", "c": "CANCELLED"}

    def test_a_paused_plan_goes_on_with_what_is_left(self) -> None:
        """Nothing runs twice, and it ends as if it had not been paused."""
        trial = self.trial(_chain())
        trial.work = _then(trial.runner.pause)
        assert trial.run() is PlanState.PAUSED
        assert trial.states() == {"a": "SUCCEEDED", "b": "PENDING", "c": "PENDING"}
        trial.store.move_plan(trial.uuid, PlanState.PENDING, now=_now())
        again = trial.again(self.make_engine(4))
        assert again.run() is PlanState.SUCCEEDED
        assert again.store.started == ["b", "c"]

    def test_a_request_to_skip_is_followed_in_its_turn(self) -> None:
        """And what needs the skipped one goes on."""
        trial = self.trial(_chain(), request_interval_s=0.001)
        skip = Request(verb="skip", who="ann", why="not today", action="b")

        def work(
            parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal
        ) -> Outcome:
            if parameters["uuid"] == "a":
                trial.store.add_request(trial.uuid, skip, now=_now())
                assert trial.store.heard.wait(PATIENCE_S), "nobody asks for requests"
            return Outcome.CHANGED

        trial.work = work
        assert trial.run() is PlanState.SUCCEEDED
        assert trial.states() == {"a": "SUCCEEDED", "b": "SKIPPED", "c": "SUCCEEDED"}
        assert trial.messages()["b"] == "skipped by ann: not today"

    def test_a_store_that_fails_lets_nothing_new_start(self) -> None:
        """What runs is told to stop and awaited; then the error comes out."""
        for error in (StoreError("disk full"), PlanConflict("plan", "ONGOING", "another has it")):
            self._break_store(error)

    def _break_store(self, error: Exception) -> None:
        trial = self.trial(_pair(), max_workers=2)
        stopped: list[str] = []

        def work(
            parameters: Mapping[str, Any], _context: ActionContext, stop: StopSignal
        ) -> Outcome:
            if parameters["uuid"] == "a":
                assert stop.wait(PATIENCE_S), "it was not told to stop"
                stopped.append("a")
            return Outcome.CHANGED

        def break_down(reports: Sequence[Report]) -> None:
            if any(r.uuid == "b" and r.old is ActionState.ONGOING for r in reports):
                raise error

        trial.work = work
        trial.store.before_commit = break_down
        assert trial.broken() is error
        assert stopped == ["a"], "what ran was awaited"
        assert trial.states() == {"a": "ONGOING", "b": "ONGOING"}, "nothing was written after it"

    def test_a_bug_does_not_leave_the_plan_running(self) -> None:
        """A listener that raises stands for one; the plan and all actions get a final state."""
        trial = self.trial(_chain(), listeners=[_Broken()])
        assert isinstance(trial.broken(), ZeroDivisionError)
        assert trial.plan().state is PlanState.FAILED
        assert "ZeroDivisionError" in (trial.plan().status_message or "")
        assert trial.states()["c"] == "CANCELLED"
        assert "ONGOING" not in trial.states().values()


class _Meeting:
    """Actions that wait inside until a number of them are there; counts how many there were."""

    def __init__(self, number: int) -> None:
        self._barrier = threading.Barrier(number)
        self._lock = threading.Lock()
        self._inside = self.peak = 0

    def work(
        self, _parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal
    ) -> Outcome:
        with self._lock:
            self._inside += 1
            self.peak = max(self.peak, self._inside)
        self._barrier.wait(PATIENCE_S)
        with self._lock:
            self._inside -= 1
        # The next come in only after all of these were counted out.
        self._barrier.wait(PATIENCE_S)
        return Outcome.CHANGED


class _Broken:
    """A listener that hears of the first end, and breaks."""

    def on_reports(self, reports: Sequence[Report]) -> None:
        if any(report.old is ActionState.ONGOING for report in reports):
            raise ZeroDivisionError

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Hear of the plan."""


def _plan(*actions: Action, **fields: Any) -> ActionPlan:
    named = {a.uuid for a in actions}
    assert len(named) == len(actions)
    return ActionPlan(
        uuid="plan", planner="test", state=PlanState.PENDING, actions=actions, **fields
    )


def _nop(uuid: str, **fields: Any) -> Action:
    return Action(uuid=uuid, name=uuid, **{"action_type": "nop", **fields})


def _chain() -> ActionPlan:
    return _plan(_nop("a"), _nop("b", needs=("a",)), _nop("c", needs=("b",)))


def _pair() -> ActionPlan:
    return _plan(_nop("a"), _nop("b"))


_FAMILY = _plan(
    _nop("a"),
    _nop("child", needs=("a",)),
    _nop("join", action_type=JOIN, needs=("a", "child")),
    _nop("grandchild", needs=("join",)),
    _nop("neighbour", parents=("a",)),
)


def _raising(uuid: str, error: BaseException) -> Work:
    def work(parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal) -> Outcome:
        if parameters["uuid"] == uuid:
            raise error
        return Outcome.CHANGED

    return work


def _failing(uuid: str) -> Work:
    return _raising(uuid, ActionFailed("it cannot be done"))


def _fated(seed: int) -> Work:
    fate = random_fate(seed)

    def work(parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal) -> Outcome:
        return carry_out(fate(parameters["uuid"]))

    return work


def _then(ask: Any) -> Work:
    def work(_parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal) -> Outcome:
        ask("ann")
        return Outcome.CHANGED

    return work


def _now() -> datetime:
    return datetime.now(UTC)
