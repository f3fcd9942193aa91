# SPDX-License-Identifier: Apache-2.0
"""Checks how a plan ends when actions, plugins, the store or the engine itself fail."""

# Tests are assertions.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from applier.contracts import ActionContext, Report, StopSignal
from applier.errors import AlreadyDone, PlanConflict, StoreError
from applier.scheduling.failures import TypePolicy
from engine_checks.engine_setting import (
    FAMILY,
    PATIENCE_S,
    EngineSetting,
    chain,
    failing,
    pair,
    plan_of,
    raising,
)
from planner.plan.states import ActionState, Outcome, PlanState


class FailureChecks(EngineSetting):
    """Failed actions, broken plugins, a broken store, a broken listener."""

    def test_a_failed_action_never_lets_through_what_needs_it(self) -> None:
        """Actions that need the failed one, directly or through a join, do not run; others do."""
        trial = self.trial(FAMILY, failing("a"))
        assert trial.run() is PlanState.FAILED
        assert trial.states() == {
            "a": "FAILED",
            "child": "FAILED_DEPENDENCIES",
            "join": "FAILED_DEPENDENCIES",
            "grandchild": "FAILED_DEPENDENCIES",
            "neighbour": "SUCCEEDED",
        }

    def test_with_continue_it_does(self) -> None:
        """With ``on_failure`` continue, all other actions run, and the plan is FAILED."""
        trial = self.trial(FAMILY, failing("a"), on_failure="continue")
        trial.store.needed = False
        assert trial.run() is PlanState.FAILED
        assert {u for u, s in trial.states().items() if s != "SUCCEEDED"} == {"a"}

    def test_the_plan_decides_what_a_failure_does_before_the_applier(self) -> None:
        """``on_failure`` of the plan takes precedence over that of the applier's configuration."""
        plan = plan_of(*FAMILY.actions, on_failure="continue")
        trial = self.trial(plan, failing("a"), on_failure="skip_descendants")
        trial.run()
        assert trial.states()["grandchild"] == "SUCCEEDED"

    def test_what_a_plugin_raises_costs_its_own_action_only(self) -> None:
        """The action is FAILED and others run, also after SystemExit or KeyboardInterrupt."""
        for error in (ValueError("no such thing"), SystemExit(3), KeyboardInterrupt()):
            trial = self.trial(pair(), raising("a", error), max_workers=1)
            assert trial.run() is PlanState.FAILED
            (failed, other) = trial.plan().actions
            assert (failed.state, failed.outcome) == (ActionState.FAILED, Outcome.ERROR)
            assert type(error).__name__ in (failed.status_message or "")
            assert other.state is ActionState.SUCCEEDED

    def test_what_is_done_already_is_skipped_and_lets_through(self) -> None:
        """An action that raises AlreadyDone is SKIPPED, and the actions that need it run."""
        trial = self.trial(chain(), raising("a", AlreadyDone("it is there")))
        assert trial.run() is PlanState.SUCCEEDED
        assert trial.states() == {"a": "SKIPPED", "b": "SUCCEEDED", "c": "SUCCEEDED"}
        assert "it is there" in (trial.messages()["a"] or "")

    def test_what_is_done_after_an_attempt_that_broke_counts_as_changed(self) -> None:
        """If a retry raises AlreadyDone, the action is SUCCEEDED with the outcome ``changed``.

        The attempt that raised an unexpected error may have done the work: triggers must fire.
        """
        tries: list[str] = []

        def work(_parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal) -> Any:
            tries.append("a")
            if len(tries) == 1:
                raise ConnectionError("the connection was lost")
            raise AlreadyDone("it is there")

        plan = chain()
        plan = replace(plan, actions=plan.actions[:1])
        trial = self.trial(plan, work, policies={"nop": TypePolicy(retries=1)})
        assert trial.run() is PlanState.SUCCEEDED
        (action,) = trial.plan().actions
        assert (action.state, action.outcome) == (ActionState.SUCCEEDED, Outcome.CHANGED)

    def test_a_store_that_fails_lets_nothing_new_start(self) -> None:
        """Running actions are stopped and awaited; nothing is written; the error is raised."""
        for error in (StoreError("disk full"), PlanConflict("plan", "ONGOING", "another has it")):
            self._break_store(error)

    def _break_store(self, error: Exception) -> None:
        trial = self.trial(pair(), max_workers=2)
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
        """If a listener raises an error, the plan is FAILED and no action stays ONGOING."""
        trial = self.trial(chain(), listeners=[_Broken()])
        assert isinstance(trial.broken(), ZeroDivisionError)
        assert trial.plan().state is PlanState.FAILED
        assert "ZeroDivisionError" in (trial.plan().status_message or "")
        assert trial.states()["c"] == "CANCELLED"
        assert "ONGOING" not in trial.states().values()


class _Broken:
    """A listener that raises ZeroDivisionError when it is notified of the end of an action."""

    def on_reports(self, reports: Sequence[Report]) -> None:
        if any(report.old is ActionState.ONGOING for report in reports):
            raise ZeroDivisionError

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Do nothing."""
