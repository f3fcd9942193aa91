# SPDX-License-Identifier: Apache-2.0
"""Filters of lists of which a plan is damaged: what is not known of it fits no filter."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from applier.storage.damaged_plans import passes
from applier.store import PlanSummary
from applier.testing.sample_plans import MADE
from planner.plan.states import PlanState

DAY = timedelta(days=1)
PLAN = PlanSummary(
    uuid="p",
    name=None,
    planner="weight",
    state=PlanState.PENDING,
    created_at=MADE,
    updated_at=None,
    actions={},
)


@pytest.mark.parametrize(
    ("created_at", "wanted", "found"),
    [
        (MADE, {}, True),
        (None, {}, True),
        (MADE, {"since": MADE}, True),
        (MADE - DAY, {"since": MADE}, False),
        (None, {"since": MADE}, False),
        (MADE - DAY, {"until": MADE}, True),
        (MADE, {"until": MADE}, False),
        (None, {"until": MADE}, False),
        (MADE, {"since": MADE, "until": MADE + DAY, "planner": "weight"}, True),
        (MADE, {"since": MADE, "planner": "events"}, False),
    ],
)
def test_times_and_texts(
    created_at: datetime | None, wanted: dict[str, object], found: bool
) -> None:
    plan = PLAN._replace(created_at=created_at)
    assert passes(plan, wanted) == found


def test_what_was_deleted_is_there_only_if_it_is_asked_for() -> None:
    plan = PLAN._replace(state=PlanState.DELETED)
    assert not passes(plan, {})
    assert passes(plan, {"state": PlanState.DELETED})
