# SPDX-License-Identifier: Apache-2.0
"""Every pair of states, for everyone who might ask."""

from __future__ import annotations

from enum import StrEnum
from itertools import product

import pytest

from planner.errors import InvalidTransition
from planner.plan.states import (
    ACTION_TRANSITIONS,
    ENDED_PLAN,
    OPEN,
    PLAN_TRANSITIONS,
    WELL,
    ActionState,
    PlanState,
    Who,
    check,
    sources,
)

TABLES = {ActionState: ACTION_TRANSITIONS, PlanState: PLAN_TRANSITIONS}
ACTION_ROWS = {
    "OPERATOR": {
        ("PENDING", "SKIPPED"),
        ("PENDING", "CANCELLED"),
        ("FAILED", "PENDING"),
        ("FAILED_DEPENDENCIES", "PENDING"),
        ("CANCELLED", "PENDING"),
        ("REVERTED", "PENDING"),
        ("SKIPPED", "PENDING"),
        ("ONGOING", "UNKNOWN"),
        ("UNKNOWN", "SUCCEEDED"),
        ("UNKNOWN", "FAILED"),
        ("FAILED", "SUCCEEDED"),
    },
    "ENGINE": {
        ("PENDING", "ONGOING"),
        ("PENDING", "SUCCEEDED"),
        ("PENDING", "SKIPPED"),
        ("PENDING", "FAILED_DEPENDENCIES"),
        ("PENDING", "CANCELLED"),
        ("ONGOING", "SUCCEEDED"),
        ("ONGOING", "FAILED"),
        ("ONGOING", "SKIPPED"),
        ("ONGOING", "CANCELLED"),
        ("ONGOING", "UNKNOWN"),
        ("ONGOING", "PENDING"),
        ("UNKNOWN", "SUCCEEDED"),
        ("UNKNOWN", "ONGOING"),
        ("UNKNOWN", "PENDING"),
        ("SUCCEEDED", "REVERTED"),
        ("SUCCEEDED", "REVERT_FAILED"),
        ("REVERT_FAILED", "REVERTED"),
    },
}
PLAN_ROWS = {
    "OPERATOR": {
        ("RECOMMENDED", "PENDING"),
        ("PAUSED", "PENDING"),
        ("ONGOING", "PENDING"),
        ("CANCELLING", "PENDING"),
        ("ONGOING", "PAUSED"),
        ("ONGOING", "CANCELLED"),
        ("CANCELLING", "CANCELLED"),
        ("FAILED", "PENDING"),
        ("CANCELLED", "PENDING"),
        ("SUCCEEDED", "PENDING"),
        ("RECOMMENDED", "CANCELLED"),
        ("PENDING", "CANCELLED"),
        ("PAUSED", "CANCELLED"),
        ("RECOMMENDED", "DELETED"),
        ("SUCCEEDED", "DELETED"),
        ("FAILED", "DELETED"),
        ("CANCELLED", "DELETED"),
        ("SUPERSEDED", "DELETED"),
        ("DELETED", "RECOMMENDED"),
        ("DELETED", "SUCCEEDED"),
        ("DELETED", "FAILED"),
        ("DELETED", "CANCELLED"),
        ("DELETED", "SUPERSEDED"),
    },
    "ENGINE": {
        ("PENDING", "ONGOING"),
        ("ONGOING", "SUCCEEDED"),
        ("ONGOING", "FAILED"),
        ("ONGOING", "PAUSED"),
        ("ONGOING", "PENDING"),
        ("ONGOING", "CANCELLING"),
        ("CANCELLING", "CANCELLED"),
    },
}


@pytest.mark.parametrize(("states", "rows"), [(ActionState, ACTION_ROWS), (PlanState, PLAN_ROWS)])
def test_a_change_is_allowed_exactly_when_it_is_one_of_these(
    states: type[StrEnum], rows: dict[str, set[tuple[str, str]]]
) -> None:
    wrong = []
    for old, new, who in product(states, states, Who):
        accepted = None
        try:
            check("it", "u1", old, new, who)
        except InvalidTransition as refused:
            accepted = refused.accepted
        if accepted != (None if (old, new) in rows[who] else sources(new, who)):
            wrong.append((old, new, who, accepted))
    assert not wrong


def test_the_states_of_plans_and_actions_do_not_mix() -> None:
    with pytest.raises(InvalidTransition):
        check("plan", "u1", ActionState.PENDING, PlanState.ONGOING, Who.ENGINE)


def test_a_refusal_names_what_it_is_and_from_where_it_could_be() -> None:
    with pytest.raises(InvalidTransition, match="u1 is DELETED: only RECOMMENDED, ONGOING"):
        check("plan", "u1", PlanState.DELETED, PlanState.PENDING, Who.OPERATOR)


def test_a_refusal_names_a_plan_as_lists_do() -> None:
    with pytest.raises(InvalidTransition, match="plan 7f3a91ab is DELETED: ") as refused:
        check("plan", "7f3a91ab-5a9d", PlanState.DELETED, PlanState.PENDING, Who.OPERATOR)
    assert refused.value.uuid == "7f3a91ab-5a9d"


def test_a_state_that_nothing_leads_to_says_so() -> None:
    with pytest.raises(InvalidTransition, match="nothing can become SUPERSEDED") as refused:
        check("plan", "u1", PlanState.PENDING, PlanState.SUPERSEDED, Who.ENGINE)
    assert (refused.value.old, refused.value.accepted) == (PlanState.PENDING, ())


@pytest.mark.parametrize("table", TABLES.values(), ids=["action", "plan"])
def test_every_row_stands_once_and_says_why(table: tuple) -> None:
    keys = [(row.old, row.new, row.who) for row in table]
    assert len(keys) == len(set(keys))
    assert all(row.why for row in table)


def test_no_operator_says_how_an_action_that_runs_or_has_succeeded_ended() -> None:
    rows = {(row.old, row.new) for row in ACTION_TRANSITIONS if row.who is Who.OPERATOR}
    running = {new for old, new in rows if old is ActionState.ONGOING}
    assert running == {ActionState.UNKNOWN}
    assert ActionState.SUCCEEDED not in {old for old, _ in rows}


def test_what_ended_well_is_not_open() -> None:
    assert not WELL & OPEN


def test_an_ended_plan_is_moved_by_operators_only() -> None:
    assert {row.who for row in PLAN_TRANSITIONS if row.old in ENDED_PLAN} == {Who.OPERATOR}
