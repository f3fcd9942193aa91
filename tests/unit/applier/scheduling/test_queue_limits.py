# SPDX-License-Identifier: Apache-2.0
"""A forecast counts the places of workers; a run hands over to queues without counting."""

from __future__ import annotations

import pytest

from applier.operations.explanation import foreseen
from applier.scheduling.forecast import forecast
from applier.scheduling.queue_limits import queue_limits
from applier.scheduling.submissions import Concurrency
from applier.store.worker_jobs import Served
from planner.plan.model import Action, ActionPlan

ACTIONS = [
    Action(uuid=f"{site}{n}", name=f"{site}{n}", action_type="nop", tokens=(f"region:{site}",))
    for site in ("b", "c")
    for n in range(4)
]
SECONDS = {action.uuid: 10.0 for action in ACTIONS}


def concurrency(served: dict[str, Served], workerless: tuple[str, ...] = ()) -> Concurrency:
    found = queue_limits(ACTIONS, ["region"], workerless, served)
    return Concurrency(
        limits={**found.limits}, max_workers=64, workerless=workerless, queue_tokens=found.tokens
    )


@pytest.mark.parametrize(
    ("served", "ends"),
    [
        ({"b": Served(1, 4), "c": Served(1, 4)}, 10.0),
        ({"b": Served(1, 1), "c": Served(1, 4)}, 40.0),
        ({"b": Served(2, 2), "c": Served(1, 1)}, 40.0),
        # Whoever comes later may have any number of places.
        ({"b": Served(1, 2)}, 20.0),
        ({}, 10.0),
        # A worker may have written anything.
        ({"b": Served(1, -3)}, 40.0),
    ],
)
def test_the_places_of_its_queue_limit_each_site(served, ends):
    found = forecast(ACTIONS, SECONDS, concurrency(served))
    assert found.timeline.makespan_s == ends
    assert found.lower_bound_s == ends


def test_what_needs_no_worker_needs_no_place():
    without = tuple(a.uuid for a in ACTIONS if a.uuid.startswith("b"))
    allowed = concurrency({"b": Served(1, 1), "c": Served(1, 4)}, without)
    assert forecast(ACTIONS, SECONDS, allowed).timeline.makespan_s == 10.0


def test_why_names_the_places_and_not_the_threads_of_the_applier():
    allowed = concurrency({"b": Served(1, 1)})
    plan = ActionPlan(uuid="p", planner="weight", actions=tuple(ACTIONS))
    found = forecast(ACTIONS, SECONDS, allowed)
    second = min(
        (a for a in ACTIONS[:4] if found.timeline.start_s[a.uuid] == 10.0), key=lambda a: a.uuid
    )
    _, why = foreseen(plan, second, found, allowed)
    assert "queue b (1)" in why
    # Nobody serves the other one: nothing is said to be free.
    (only,) = foreseen(plan, ACTIONS[4], found, allowed)
    assert "is expected to start at 0s" in only
