# SPDX-License-Identifier: Apache-2.0
"""The differences of two plans as lines: how links are counted, and what is cut."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest
from store_checks.running_plans import NOW

from applier import configuration
from applier.actions.markers import Nop
from applier.assembly import Assembly
from applier.operations.differences import Comparison, compared, lines
from planner.differences.comparison import difference
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState

FIRST = [Action(uuid=f"a{i}", name=f"a{i}", action_type="nop") for i in range(2)]


def told(old: list[Action], new: list[Action]) -> list[str]:
    """Return the lines about two plans, without their titles."""
    plans = [ActionPlan(uuid="p", planner="weight", actions=tuple(found)) for found in (old, new)]
    made = Comparison(old=plans[0], new=plans[1], found=difference(*plans), old_s=6.0, new_s=6.0)
    return list(lines(made, ("old", "new"), {"nop": Nop}))[2:]


def eight(**links: tuple[object, ...]) -> list[Action]:
    """Return eight actions with these links."""
    return [Action(uuid=f"b{i}", name=f"b{i}", action_type="nop", **links) for i in range(8)]


@pytest.mark.parametrize(
    ("links", "number", "words"),
    [
        ({"parents": ("a0", "a1")}, 16, "after a0, a1"),
        ({"needs": ("a0",)}, 8, "needs a0"),
        ({"needs_any": (("a0", "a1"),)}, 8, "needs one of a0, a1"),
    ],
)
def test_links_are_counted_and_six_of_their_actions_are_named(links, number, words):
    said = told([*FIRST, *eight()], [*FIRST, *eight(**links)])
    assert f" {number} new links." in said[0]
    assert f"  + b0, b1, b2, b3, b4, b5, +2 {words}" in said


def test_twenty_differences_of_a_kind_are_listed_and_the_rest_is_counted():
    more = [Action(uuid=f"c{i}", name=f"c{i}", action_type="nop") for i in range(21)]
    said = told(FIRST, FIRST + more)
    assert [line.split()[1] for line in said if " + " in line] == [f"c{i}" for i in range(20)]
    assert "  and 1 more; -f json lists all" in said


def test_a_long_value_is_cut_around_its_first_difference():
    for old, new, shown in (
        ("one", "two", "one -> two"),
        (None, "x" * 70, f"(none) -> {'x' * 60}..."),
        ("x" * 70, None, f"{'x' * 60}... -> (none)"),
        ("x" * 40 + "old" + "y" * 90, "x" * 40 + "new" + "y" * 90, "...xxxxxxxxxxold"),
    ):
        plans = [
            [Action(uuid="a", name="a", action_type="nop", input_parameters=given)]
            for given in ({"message": text} if text else {} for text in (old, new))
        ]
        (line,) = [line for line in told(*plans) if "message" in line]
        assert line.startswith(f"      parameter message: {shown}")


def test_a_plan_that_has_run_is_expected_to_take_as_long_as_its_copy(tmp_path):
    """The actions that have ended are counted as those of a plan that has not begun."""
    copy = ActionPlan(uuid="p", planner="weight", actions=tuple(FIRST))
    ended = replace(FIRST[1], state=ActionState.SUCCEEDED, started_at=NOW, ended_at=NOW)
    ran = replace(copy, actions=(FIRST[0], ended))
    (tmp_path / "watcher.conf").write_text("")
    with closing(Assembly(configuration.load([str(tmp_path / "watcher.conf")]))) as parts:
        made = compared(parts, ran, copy, max_workers=1)
    assert (made.old_s, made.new_s) == (2, 2)
