# SPDX-License-Identifier: Apache-2.0
"""What the digest of a plan covers: everything that changes what a run does, and nothing else."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta, timezone
from typing import Any

import pytest

from planner.guards import Guards
from planner.guards.blast_radius import Share
from planner.plan.model import Action, ActionPlan, Blocker, Trigger
from planner.plan.place_rules import HeldPlace, PlaceRule
from planner.plan.states import ActionState, Outcome, PlanState, StateReason
from tests.unit.planner.plan.test_model import NOW, rich_plan, with_action

HOUR = timedelta(hours=1)
EXTENT = (Share("hosts", 2, 14),)
#: Fields of a plan -> values other than those of ``rich_plan``.
PLAN_COVERED: dict[str, list[Any]] = {
    "planner": ["weight"],
    "limits": [{"node:*": 2}, {"node:*": 3, "type:nop": 1}, {}],
    "places": [{"serial:p": PlaceRule()}, {"serial:p": PlaceRule(keep=False)}],
    "tolerances": [
        (),
        ({"name": "g", "nodes": ["1"], "failed_nodes": 2},),
        ({"name": "g", "nodes": ["1", "2"], "failed_nodes": 1},),
    ],
    "on_failure": [None, "continue"],
    "cloud": [None, "west"],
    "facts_at": [NOW],
    "guards": [Guards(approvals=1), Guards(labels=("prod",)), Guards(extent=EXTENT)],
    "actions": [(), rich_plan().actions[:4], rich_plan().actions[::-1]],
}
PLAN_LEFT_OUT: dict[str, Any] = {
    "uuid": "other",
    "name": "other",
    "state": PlanState.SUCCEEDED,
    "created_at": None,
    "updated_at": NOW,
    "start_at": NOW,
    "status_message": "over",
    "audit_uuid": "audit",
    "strategy_name": "strategy",
    "efficacy_indicators": (),
    "global_efficacy": ({"name": "all"},),
    "warnings": (),
}
#: Fields of an action -> the number of one in ``rich_plan``, and other values that it may have.
ACTION_COVERED: dict[str, list[tuple[int, Any]]] = {
    "uuid": [(0, "u1"), (0, "nowhere")],
    "action_type": [(4, "sleep")],
    "name": [(4, None), (4, "other")],
    "resource_id": [(4, "s"), (4, None)],
    "input_parameters": [(1, {"x": [1, {"y": 3}]}), (1, {})],
    "parents": [(2, ("u0",)), (2, ("u1", "u0")), (4, ("u0",))],
    "needs": [(2, ()), (2, ("u1",))],
    "needs_any": [(3, (("u0", "u1"),)), (3, (("u0", "u1", "u2"),))],
    "triggers": [
        (4, ()),
        (4, (Trigger("u2", (Outcome.CHANGED, Outcome.CREATED)),)),
        (4, (Trigger("u3", (Outcome.CHANGED,)),)),
    ],
    "blocked_by": [(4, (Blocker("u2", (Outcome.ERROR,)),))],
    "tokens": [(0, ("type:nop",)), (0, ("node:c1", "type:nop"))],
    "places": [(0, (HeldPlace("serial:p", "web-1"),)), (0, (HeldPlace("serial:p", "web-2"),))],
    "estimate_s": [(4, 2.5), (4, None)],
    "timeout_s": [(4, None), (4, 11.0)],
    "retries": [(4, 0)],
}
ACTION_LEFT_OUT: dict[str, Any] = {
    "description": "says who",
    "reason": "because",
    "state": ActionState.PENDING,
    "outcome": None,
    "status_message": None,
    "state_reason": StateReason.NOT_TRIGGERED,
    "started_at": None,
    "ended_at": None,
    "attempts": 0,
}


@pytest.mark.parametrize(
    ("kind", "covered", "left_out"),
    [(ActionPlan, PLAN_COVERED, PLAN_LEFT_OUT), (Action, ACTION_COVERED, ACTION_LEFT_OUT)],
)
def test_every_field_is_known_to_be_covered_or_left_out(
    kind: type[Any], covered: dict[str, Any], left_out: dict[str, Any]
) -> None:
    assert not covered.keys() & left_out.keys()
    assert {field.name for field in fields(kind)} == covered.keys() | left_out.keys()


def test_what_is_covered_changes_the_digest() -> None:
    plan = rich_plan()
    others = [(f, replace(plan, **{f: v})) for f, values in PLAN_COVERED.items() for v in values]
    others += [
        (f, with_action(plan, i, **{f: v}))
        for f, values in ACTION_COVERED.items()
        for i, v in values
    ]
    assert [field for field, other in others if other.digest == plan.digest] == []


def test_what_is_left_out_does_not() -> None:
    plan = rich_plan()
    others = [(field, replace(plan, **{field: v})) for field, v in PLAN_LEFT_OUT.items()]
    others += [(field, with_action(plan, 4, **{field: v})) for field, v in ACTION_LEFT_OUT.items()]
    assert [field for field, other in others if other == plan or other.digest != plan.digest] == []


def test_neither_uuids_nor_the_order_of_keys_matter() -> None:
    assert rich_plan("u").digest == rich_plan("other").digest
    assert replace(rich_plan(), limits={"type:nop": 1, "node:*": 2}).digest == rich_plan().digest


def test_each_action_that_is_taken_away_gives_another_digest() -> None:
    plan = rich_plan()
    digests = {
        replace(plan, actions=plan.actions[:i] + plan.actions[i + 1 :]).digest
        for i in range(len(plan.actions))
    }
    assert len(digests | {plan.digest}) == len(plan.actions) + 1


def test_a_digest_that_was_written_once_fits_the_same_plan_ever_after() -> None:
    assert (
        rich_plan().digest
        == "sha256:b4df29cf5a83fe75a7a5cbcf86abf2f8d025f9ea44bb5c355a01df74eaaa812b"
    )


def test_when_a_plan_was_made_counts_if_it_demands_an_age_and_has_no_time_of_facts() -> None:
    plan = replace(rich_plan(), guards=Guards(approvals=1, approval_max_age_s=60.0))
    assert replace(plan, created_at=NOW + HOUR).digest != plan.digest
    plan = replace(plan, facts_at=NOW)
    assert replace(plan, created_at=NOW + HOUR).digest == plan.digest


def test_a_time_is_covered_as_a_moment_whatever_its_zone() -> None:
    plan = replace(rich_plan(), facts_at=NOW)
    east = NOW.astimezone(timezone(HOUR))
    assert replace(plan, facts_at=east).digest == plan.digest


@pytest.mark.parametrize("field", ["estimate_s", "timeout_s"])
def test_seconds_without_a_fraction_are_equal_however_they_are_written(field: str) -> None:
    """A record keeps them as 5.0."""
    whole = with_action(rich_plan(), 4, **{field: 5})
    exact = with_action(rich_plan(), 4, **{field: 5.0})
    assert whole.digest == exact.digest
