# SPDX-License-Identifier: Apache-2.0
"""Checks what an engine does when an operator cancels or pauses a plan, or skips an action."""

# Tests are assertions.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trials import Work

from applier.contracts import ActionContext, Request, StopSignal
from applier.errors import ActionFailed
from engine_checks.engine_setting import NOW, PATIENCE_S, EngineSetting, chain
from planner.plan.states import Outcome, PlanState


class OperatorRequestChecks(EngineSetting):
    """Cancels, pauses and skips."""

    def test_a_cancel_before_the_start_lets_nothing_start(self) -> None:
        """All actions are CANCELLED, with the user and the reason in their messages."""
        trial = self.trial(chain())
        trial.runner.cancel("ann", "enough")
        assert trial.run() is PlanState.CANCELLED
        assert not trial.store.started
        assert set(trial.states().values()) == {"CANCELLED"}
        _names(trial.messages()["a"], "ann", "enough")

    def test_a_cancel_stops_what_runs_and_awaits_it(self) -> None:
        """The plan is CANCELLING until all running actions have ended."""
        trial = self.trial(chain(), request_interval_s=0.001)
        seen: list[PlanState] = []

        def work(
            _parameters: Mapping[str, Any], _context: ActionContext, stop: StopSignal
        ) -> Outcome:
            trial.store.add_request(trial.uuid, Request(verb="cancel", who="ann"), now=NOW)
            assert stop.wait(PATIENCE_S), "it was not told to stop"
            seen.append(trial.plan().state)
            raise ActionFailed("stopped half-way")

        trial.work = work
        assert trial.run() is PlanState.CANCELLED
        assert seen == [PlanState.CANCELLING]
        assert trial.states() == {"a": "CANCELLED", "b": "CANCELLED", "c": "CANCELLED"}
        _names(trial.messages()["a"], "stopped half-way")

    def test_an_action_that_ends_well_after_a_cancel_has_succeeded(self) -> None:
        """A cancel does not change the end of an action that did its work."""
        trial = self.trial(chain())
        trial.work = _then(trial.runner.cancel)
        assert trial.run() is PlanState.CANCELLED
        assert trial.states() == {"a": "SUCCEEDED", "b": "CANCELLED", "c": "CANCELLED"}

    def test_a_paused_plan_goes_on_with_what_is_left(self) -> None:
        """No action runs twice, and the plan ends as if it had not been paused."""
        trial = self.trial(chain())
        trial.work = _then(trial.runner.pause)
        assert trial.run() is PlanState.PAUSED
        assert trial.states() == {"a": "SUCCEEDED", "b": "PENDING", "c": "PENDING"}
        trial.store.move_plan(trial.uuid, PlanState.PENDING, now=NOW)
        again = trial.again(self.make_engine(4))
        assert again.run() is PlanState.SUCCEEDED
        assert again.store.started == ["b", "c"]

    def test_a_request_to_skip_is_followed_in_its_turn(self) -> None:
        """The action is SKIPPED when its turn comes, and the actions that need it run."""
        trial = self.trial(chain(), request_interval_s=0.001)
        skip = Request(verb="skip", who="ann", why="not today", action="b")

        def work(
            parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal
        ) -> Outcome:
            if parameters["uuid"] == "a":
                trial.store.add_request(trial.uuid, skip, now=NOW)
                assert trial.store.heard.wait(PATIENCE_S), "nobody asks for requests"
            return Outcome.CHANGED

        trial.work = work
        assert trial.run() is PlanState.SUCCEEDED
        assert trial.states() == {"a": "SUCCEEDED", "b": "SKIPPED", "c": "SUCCEEDED"}
        _names(trial.messages()["b"], "ann", "not today")


def _names(message: str | None, *parts: str) -> None:
    """Assert that a message contains all these parts, such as the user and the reason."""
    assert all(part in (message or "") for part in parts), message


def _then(ask: Any) -> Work:
    def work(_parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal) -> Outcome:
        ask("ann")
        return Outcome.CHANGED

    return work
