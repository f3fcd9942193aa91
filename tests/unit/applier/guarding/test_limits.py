# SPDX-License-Identifier: Apache-2.0
"""Limits of a guarded plan may be lowered while it runs, and not raised."""

from __future__ import annotations

from dataclasses import replace

import pytest

from applier.guarding import limits
from applier.testing.sample_plans import new_plan
from planner.guards import NO_GUARDS, Guards

PLAN = replace(
    new_plan("a", uuid="6a1f0000-0000-4000-8000-000000000001"),
    limits={"at-once:hosts": 2, "type:nop": 3, "node:*": 1},
)
APPROVED = Guards(approvals=1)


@pytest.mark.parametrize("demanded", [NO_GUARDS, APPROVED])
def test_what_is_touched_at_once_is_never_raised(demanded):
    told = limits.refusal(PLAN, demanded, {"at-once:hosts": 3})
    assert "at-once:hosts in plan 6a1f0000 is 2" in told
    assert told.endswith("raised to 3")
    assert limits.refusal(PLAN, demanded, {"type:nop": 1, "at-once:hosts": 9})
    for number in (1, 2):
        assert limits.refusal(PLAN, demanded, {"at-once:hosts": number}) is None


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"type:nop": 4}, "type:nop in plan 6a1f0000 is 3"),
        ({"node:c1": 2}, "node:c1 in plan 6a1f0000 is 1"),
        ({"node:*": 2}, "node:* in plan 6a1f0000 is 1"),
        ({"type:nop": 2, "node:c1": 1, "type:migrate": 9, "max_workers": 50}, None),
    ],
)
def test_a_plan_that_needs_approvals_keeps_the_limits_of_what_was_approved(wanted, told):
    found = limits.refusal(PLAN, APPROVED, wanted)
    assert told in found if told else found is None
    assert limits.refusal(PLAN, NO_GUARDS, wanted) is None
