# SPDX-License-Identifier: Apache-2.0
"""A plan that touches too much is refused; limits of a guarded plan are lowered and not raised."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sample_plans import new_plan

from applier.guarding import guard
from applier.guarding.guard import Guard
from planner.guards import NO_GUARDS, Guards
from planner.guards.blast_radius import Share, bounds

EXTENT = (
    *(Share("hosts", 2, 14), Share("instances", 1, 40), Share("rack/r1", 2, 7)),
    # It is known which hosts are in a zone and which instances in a group: none of these.
    *(Share("group", 0, 0), Share("zone", 0, 0)),
)


def plan_of(extent=EXTENT):
    made = new_plan("a", "b", uuid="6a1f0000-0000-4000-8000-000000000001")
    tokens = ("node:c1", "instance:i1"), ("node:c2",)
    actions = [replace(a, tokens=t) for a, t in zip(made.actions, tokens, strict=True)]
    return replace(made, actions=tuple(actions), guards=Guards(extent=extent))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hosts=1", "2 of 14 hosts, and at most 1 "),
        ("hosts=10%", "2 of 14 hosts, and at most 10 %"),
        ("rack=20%", "2 of 7 of rack r1, and at most 20 %"),
        ("hosts=9, instances=0", "1 of 40 instances, and at most 0 "),
        ("hosts=2, instances=3%, rack=2, zone=0", None),
        ("group=0", None),
    ],
)
def test_more_than_a_bound_is_refused(text, told):
    demanded = Guards(blast_radius=bounds(text))
    found = guard.touches_too_much(plan_of(), demanded)
    assert (found is None) is (told is None)
    assert told is None or f"plan 6a1f0000 touches {told}" in found


def test_a_share_of_what_is_not_known_is_refused_and_a_number_is_not():
    share, number = (Guards(blast_radius=bounds(text)) for text in ("hosts=99%", "hosts=2"))
    assert "it is not known how many there are" in guard.touches_too_much(plan_of(()), share)
    assert guard.touches_too_much(plan_of(()), number) is None
    assert guard.touches_too_much(new_plan("a"), share) is None


@pytest.mark.parametrize("kind", ["rack", "group"])
@pytest.mark.parametrize("most", ["0", "9", "99%"])
@pytest.mark.parametrize("extent", [(), (Share("hosts", 2, 14), Share("instances", 1, 40))])
def test_a_bound_of_what_is_not_known_is_refused(kind, most, extent):
    demanded = Guards(blast_radius=bounds(f"{kind}={most}"))
    told = guard.touches_too_much(plan_of(extent), demanded)
    assert told.startswith(f"it is not known which {kind} ")
    assert "6a1f0000" in told
    assert guard.touches_too_much(new_plan("a"), demanded) is None, "it touches nothing"


def test_a_plan_without_facts_needs_the_approvals_of_the_racks_that_it_may_touch():
    guard = Guard(approvals_for={"label:rack/r1": 2, "label:prod": 3})
    assert guard.demanded(plan_of()).approvals == 2
    assert guard.demanded(plan_of(())).approvals == 2
    elsewhere = (Share("hosts", 2, 14), Share("rack/r2", 2, 7))
    assert guard.demanded(plan_of(elsewhere)).approvals == 0
    assert guard.demanded(new_plan("a")).approvals == 0


def test_a_plan_that_was_made_without_the_limit_is_refused():
    demanded = Guards(blast_radius_at_once=bounds("hosts=2"))
    assert "make a new plan" in guard.touches_too_much(plan_of(), demanded)
    made = plan_of()
    made = replace(made, guards=made.guards._replace(blast_radius_at_once=bounds("hosts=2")))
    assert guard.touches_too_much(made, demanded) is None


# Limits of a guarded plan may be lowered while it runs, and not raised.

PLAN = replace(
    new_plan("a", uuid="6a1f0000-0000-4000-8000-000000000001"),
    limits={"at-once:hosts": 2, "type:nop": 3, "node:*": 1},
)
APPROVED = Guards(approvals=1)


@pytest.mark.parametrize("demanded", [NO_GUARDS, APPROVED])
def test_what_is_touched_at_once_is_never_raised(demanded):
    told = guard.raise_refused(PLAN, demanded, {"at-once:hosts": 3})
    assert "at-once:hosts in plan 6a1f0000 is 2" in told
    assert told.endswith("raised to 3")
    assert guard.raise_refused(PLAN, demanded, {"type:nop": 1, "at-once:hosts": 9})
    for number in (1, 2):
        assert guard.raise_refused(PLAN, demanded, {"at-once:hosts": number}) is None


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
    found = guard.raise_refused(PLAN, APPROVED, wanted)
    assert told in found if told else found is None
    assert guard.raise_refused(PLAN, NO_GUARDS, wanted) is None
