# SPDX-License-Identifier: Apache-2.0
"""The base class of the tests of engines, small plans, and functions that do work of actions."""

# Tests are assertions.

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from random_plans import carry_out, random_fate
from trials import Trial, Work, changed

from applier.contracts import ActionContext, StopSignal
from applier.engines.engine import Engine
from applier.errors import ActionFailed
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import Outcome, PlanState

#: Seconds after which a test that waits for other threads gives up.
PATIENCE_S = 120.0
#: The time of the operators' requests in the tests.
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class EngineSetting:
    """Base class of tests of engines; makes trials of plans, and closes them after each test."""

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


def plan_of(*actions: Action, **fields: Any) -> ActionPlan:
    """Return a PENDING plan of these actions, which have different uuids."""
    named = {a.uuid for a in actions}
    assert len(named) == len(actions)
    return ActionPlan(
        uuid="plan", planner="test", state=PlanState.PENDING, actions=actions, **fields
    )


def nop(uuid: str, **fields: Any) -> Action:
    """Return an action that has its uuid as its name."""
    return Action(uuid=uuid, name=uuid, **{"action_type": "nop", **fields})


def chain() -> ActionPlan:
    """Return a plan of three actions, each of which needs the one before."""
    return plan_of(nop("a"), nop("b", needs=("a",)), nop("c", needs=("b",)))


def pair() -> ActionPlan:
    """Return a plan of two actions that are independent of each other."""
    return plan_of(nop("a"), nop("b"))


#: An action, others that need it directly or through a join, and one that only has it as a parent.
FAMILY = plan_of(
    nop("a"),
    nop("child", needs=("a",)),
    nop("join", action_type=JOIN, needs=("a", "child")),
    nop("grandchild", needs=("join",)),
    nop("neighbour", parents=("a",)),
)


def raising(uuid: str, error: BaseException) -> Work:
    """Return work that raises an error in one action, and returns ``changed`` in all others."""

    def work(parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal) -> Outcome:
        if parameters["uuid"] == uuid:
            raise error
        return Outcome.CHANGED

    return work


def failing(uuid: str) -> Work:
    """Return work that raises ActionFailed in one action."""
    return raising(uuid, ActionFailed("it cannot be done"))


def fated(seed: int) -> Work:
    """Return work that ends as :func:`random_plans.random_fate` chooses."""
    fate = random_fate(seed)

    def work(parameters: Mapping[str, Any], _context: ActionContext, _stop: StopSignal) -> Outcome:
        return carry_out(fate(parameters["uuid"]))

    return work
