# SPDX-License-Identifier: Apache-2.0
"""Times, reports, claimed plans and threads for the tests of stores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from sample_plans import MADE

from applier.contracts import Claimant, Report, Request
from applier.errors import ApplierError
from applier.store import RunStore
from planner.errors import InvalidTransition
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState

NOW = MADE + timedelta(minutes=1)
LATER = NOW + timedelta(minutes=1)
AFTERWARDS = LATER + timedelta(minutes=1)
#: The claimant in the tests.
ME = Claimant(host="db-7", pid=4711, user="wanda")


class RunStoreUnderTest(RunStore, Protocol):
    """A RunStore with two more methods, which put plans and requests into it.

    A store that gets them in another way adds these methods in a subclass for the tests.
    """

    def save_plan(self, plan: ActionPlan) -> None:
        """Store a new plan in the states that it has; a uuid can be saved only once."""

    def add_request(self, plan: str, request: Request, *, now: datetime) -> None:
        """Store a request for the claimant of a plan."""


def starts(action: Action) -> Report:
    """Return the report that a PENDING action starts."""
    return Report(uuid=action.uuid, old=ActionState.PENDING, state=ActionState.ONGOING)


def succeeds(action: Action, **facts: Any) -> Report:
    """Return the report that an ONGOING action has SUCCEEDED."""
    return ends(action, ActionState.SUCCEEDED, **{"outcome": Outcome.CHANGED, **facts})


def ends(action: Action, state: ActionState, **facts: Any) -> Report:
    """Return the report that an ONGOING action ends in a state."""
    return Report(uuid=action.uuid, old=ActionState.ONGOING, state=state, **facts)


def retries(action: Action, **facts: Any) -> Report:
    """Return the report that an attempt FAILED and that the action is tried again."""
    return ends(action, ActionState.PENDING, outcome=Outcome.FAILED, **facts)


def claimed(store: RunStoreUnderTest, plan: ActionPlan) -> str:
    """Save a plan as PENDING and claim it; return the token of the claim."""
    store.save_plan(replace(plan, state=PlanState.PENDING))
    return store.claim_plan(plan.uuid, ME, now=MADE)


def at_once(number: int, call: Callable[[int], Any]) -> list[Any]:
    """Call a function with 0, 1, ... in one thread each; return the results in this order.

    An ApplierError or InvalidTransition that a call raises is returned as its result.
    """
    ready = threading.Barrier(number, timeout=30)

    def run(index: int) -> Any:
        ready.wait()
        try:
            return call(index)
        except (ApplierError, InvalidTransition) as refusal:
            return refusal

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(run, range(number)))
