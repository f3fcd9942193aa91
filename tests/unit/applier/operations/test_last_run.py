# SPDX-License-Identifier: Apache-2.0
"""How long the last run of a plan took, also if it took over what an earlier one had begun."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from applier.operations.last_run import first_start, taken_s
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState

CLAIMED = datetime(2026, 11, 25, 9, tzinfo=UTC)


def plan(*times: tuple[int, int | None]) -> ActionPlan:
    """Return a plan whose actions started and ended so many seconds after the last claim."""
    actions = [
        Action(
            uuid=f"a{number}",
            action_type="nop",
            state=ActionState.ONGOING if end is None else ActionState.SUCCEEDED,
            attempts=1,
            started_at=CLAIMED + timedelta(seconds=start),
            ended_at=None if end is None else CLAIMED + timedelta(seconds=end),
        )
        for number, (start, end) in enumerate(times)
    ]
    return ActionPlan(uuid="p", planner="p", actions=tuple(actions), state=PlanState.SUCCEEDED)


@pytest.mark.parametrize(
    ("times", "first_s", "took_s"),
    [
        ([(2, 5), (5, 9)], 2, 7),
        ([(-60, -50), (2, 5)], 2, 3),
        ([(-60, 20), (21, 22)], 0, 22),
        ([(-60, None)], 0, 0),
        ([(-60, -50)], None, 0),
        ([], None, 0),
    ],
    ids=["all of it", "the rest", "what ran on", "still runs", "nothing was left", "no actions"],
)
def test_the_last_run_begins_with_its_first_start_or_with_what_it_took_over(times, first_s, took_s):
    store = SimpleNamespace(last_claimant=lambda _: SimpleNamespace(claimed_at=CLAIMED))
    first = None if first_s is None else CLAIMED + timedelta(seconds=first_s)
    assert first_start(store, plan(*times)) == first
    assert taken_s(store, plan(*times)) == took_s
