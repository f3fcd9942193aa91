# SPDX-License-Identifier: Apache-2.0
"""Checks how many actions an engine runs at once, and in which order."""

# Tests are assertions.

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from random_plans import expected_ends, random_fate, random_plan

from applier.contracts import ActionContext, StopSignal
from engine_checks.engine_setting import (
    FAMILY,
    PATIENCE_S,
    EngineSetting,
    fated,
    plan_of,
)
from planner.plan.model import Action
from planner.plan.states import Outcome, PlanState


class EngineConcurrencyChecks(EngineSetting):
    """Order, workers, limits and joins."""

    def test_random_plans_end_as_the_rules_say(self) -> None:
        """Each action has the end that ``expected_ends`` computes, for one action at a time."""
        for seed in range(30):
            plan, fate = random_plan(seed), random_fate(seed)
            trial = self.trial(plan, fated(seed))
            trial.run()
            assert trial.store.ends == expected_ends(plan, fate), f"plan {seed}"

    def test_exactly_max_workers_run_at_once(self) -> None:
        """Each action waits until ``max_workers`` actions run, and counts those that run."""
        meeting = _Meeting(3)
        plan = plan_of(*(Action(uuid=f"a{i}", action_type="nop") for i in range(12)))
        trial = self.trial(plan, meeting.work, max_workers=3)
        assert trial.run() is PlanState.SUCCEEDED
        assert (meeting.peak, trial.store.peak) == (3, 3)

    def test_exactly_the_limit_of_a_token_run_at_once(self) -> None:
        """With eight workers and a limit of two, two actions run at once and never a third."""
        meeting = _Meeting(2)
        members = [Action(uuid=f"a{i}", action_type="nop", tokens=("node:1",)) for i in range(8)]
        trial = self.trial(plan_of(*members, limits={"node:*": 2}), meeting.work, max_workers=8)
        assert trial.run() is PlanState.SUCCEEDED
        assert (meeting.peak, trial.store.peak) == (2, 2)

    def test_a_join_is_on_record_without_a_worker(self) -> None:
        """A join ends SUCCEEDED, and no start of it is committed."""
        trial = self.trial(FAMILY)
        assert trial.run() is PlanState.SUCCEEDED
        assert trial.states()["join"] == "SUCCEEDED"
        assert "join" not in trial.store.started


class _Meeting:
    """Blocks actions until ``number`` of them run; ``peak`` is the most that ran at once."""

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
        # The next actions enter only after all of these have left.
        self._barrier.wait(PATIENCE_S)
        return Outcome.CHANGED
