# SPDX-License-Identifier: Apache-2.0
"""How long the last run of a plan took, also if it took over what an earlier one had begun."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from applier.contracts import HistoryEntry
from applier.operations.last_run import began, taken_s
from applier.timeline.holds import runs
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

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
    ("times", "took_s"),
    [
        ([(2, 5), (5, 9)], 9),
        ([(-60, -50), (2, 5)], 5),
        ([(-60, 20), (21, 22)], 22),
        ([(-60, None)], 0),
        ([(-60, -50)], 0),
        ([], 0),
    ],
    ids=["all of it", "the rest", "what ran on", "still runs", "nothing was left", "no actions"],
)
def test_the_last_run_lasts_from_its_claim_to_its_last_end(times, took_s):
    made = plan(*times)
    store = SimpleNamespace(last_claimant=lambda _: SimpleNamespace(claimed_at=CLAIMED))
    assert began(store, made) == CLAIMED
    assert taken_s(store, made) == took_s
    entries = [
        HistoryEntry(verb="apply", who="ada", at=CLAIMED - timedelta(seconds=before))
        for before in (100, 0)
    ]
    last = runs(made, entries)[-1]
    assert (last.ended - last.began).total_seconds() == took_s
