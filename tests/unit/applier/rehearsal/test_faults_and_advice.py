# SPDX-License-Identifier: Apache-2.0
"""Faults are read and matched or refused, all at once; which lower limit is advised."""

from __future__ import annotations

import pytest

from applier.rehearsal.faults import Concerned, Fault, FaultKind, concerned, read
from applier.rehearsal.rehearsal_figures import Lowered, Quantiles, RehearsalFigures, best
from planner.errors import InvalidInput
from planner.plan.model import Action

ACTIONS = (
    Action(uuid="u1", action_type="migrate", name="db-1", tokens=("node:c1", "node:c2")),
    Action(uuid="u2", action_type="migrate", name="web", tokens=("node:c3", "type:migrate")),
    Action(uuid="u3", action_type="nop", name="migrate"),
)


def test_the_parts_of_a_fault() -> None:
    assert read("fail:migrate=5%, slow:node:c1=3x,hang:db-1,fail:node:*=0.5%,slow:db-2=1x") == [
        Fault(FaultKind.FAIL, "migrate", chance=0.05),
        Fault(FaultKind.SLOW, "node:c1", factor=3.0),
        Fault(FaultKind.HANG, "db-1"),
        Fault(FaultKind.FAIL, "node:*", chance=0.005),
        Fault(FaultKind.SLOW, "db-2", factor=1.0),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no fault"),
        ("break:x", "is no fault"),
        ("fail", "names no action"),
        ("fail:", "names no action"),
        ("fail:x=0%", "is not a percentage"),
        ("fail:x=101%", "is not a percentage"),
        ("fail:x=5", "is not a percentage"),
        ("fail:x=٥%", "is not a percentage"),
        ("slow:x", "is not a factor"),
        ("slow:x=0.5x", "is not a factor"),
        ("hang:x=3x", "is not a percentage"),
    ],
)
def test_what_is_no_fault_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        read(text)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        read("fali:a,fail:b,slow:c=x")
    assert [m.place for m in refused.value.mistakes] == ["--inject fali:a", "--inject slow:c=x"]


def test_a_type_a_name_a_resource_and_each_resource_of_a_kind() -> None:
    by_type, by_name, on_one, on_each = read("fail:migrate,hang:web,slow:node:c1=2x,fail:node:*")
    found = concerned([by_type, by_name, on_one, on_each], ACTIONS)
    assert set(found["u1"]) == {
        Concerned(by_type),
        Concerned(on_one, "node:c1"),
        Concerned(on_each, "node:c1"),
        Concerned(on_each, "node:c2"),
    }
    assert set(found["u2"]) == {
        Concerned(by_type),
        Concerned(by_name),
        Concerned(on_each, "node:c3"),
    }
    assert not found["u3"]  # its name is that of a type, which comes first


def test_targets_that_the_plan_does_not_have_are_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        concerned(read("fail:migrat,slow:node:c9=2x,fail:rack:*"), ACTIONS)
    assert len(refused.value.mistakes) == 3
    assert "migrate" in str(refused.value)


# Which lower limit is advised, of those that were rehearsed.


def figures(wrong_mean, makespan_s=60.0, homeless=0.0):
    none = Quantiles(0.0, 0.0, 0.0)
    return RehearsalFigures(
        runs=100,
        states={},
        makespan_s=Quantiles(makespan_s, makespan_s, makespan_s),
        wrong=none,
        wrong_mean=wrong_mean,
        not_run_mean=0.0,
        stopped_by={},
        homeless=Quantiles(homeless, homeless, homeless),
        homeless_runs=0,
        homeless_left=0,
        actions=(),
        half_done=(),
    )


def advised(planned, *tried):
    found = best(planned, [Lowered("max_workers", 8, i, one) for i, one in enumerate(tried)])
    return None if found is None else found.new


PLANNED = figures(4.0)


@pytest.mark.parametrize(
    ("tried", "number"),
    [
        ([], None),
        ([figures(4.0), figures(3.9)], None),
        ([figures(5.0), figures(1.0)], 1),
        # Of those that help about alike, the fastest; one that helps much more is worth its time.
        ([figures(1.0, 90.0), figures(1.0, 70.0)], 1),
        ([figures(3.0, 10.0), figures(1.0, 90.0)], 1),
        # One that lets nothing go wrong.
        ([figures(2.0, 10.0), figures(0.0, 90.0)], 1),
        ([figures(0.0, 90.0), figures(0.0, 70.0)], 1),
        # Neither may get worse.
        ([figures(1.0, homeless=1.0)], None),
    ],
)
def test_the_limit_that_lets_least_go_wrong_is_advised(tried, number):
    assert advised(PLANNED, *tried) == number


def test_fewer_instances_without_a_home_help_as_well():
    assert advised(figures(4.0, homeless=9.0), figures(4.0, homeless=2.0)) == 0
