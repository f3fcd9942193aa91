# SPDX-License-Identifier: Apache-2.0
"""Several holdings are asked as one."""

from __future__ import annotations

import pytest

from applier.run.holdings import CombinedHolding
from planner.plan.model import Action

ACTION = Action(uuid="a", action_type="nop")


class One:
    """Holds everything back, or nothing, and notes what it is told."""

    def __init__(self, seconds: float | None = None, *, is_closed: bool = False) -> None:
        self._seconds, self._is_closed = seconds, is_closed
        self.told: list[int | str] = []

    def holds(self, action: Action, *, begins: bool) -> bool:
        return self._is_closed and action is ACTION

    def again_s(self) -> float | None:
        return self._seconds

    def ended(self) -> None:
        self.told.append("ended")

    def tell(self, number: int) -> None:
        self.told.append(number)


@pytest.mark.parametrize(
    ("seconds", "again_s"),
    [([5.0, 3.0], 3.0), ([5.0], 5.0), ([5.0, None], None), ([None, None], None)],
)
def test_they_are_asked_again_after_the_shortest_time_unless_one_hands_the_plan_back(
    seconds, again_s
):
    assert CombinedHolding([One(each) for each in seconds]).again_s() == again_s


@pytest.mark.parametrize(("closed", "holds"), [([0, 0], False), ([0, 1], True), ([1, 1], True)])
def test_one_is_enough_to_hold_an_action_back(closed, holds):
    several = CombinedHolding([One(is_closed=bool(each)) for each in closed])
    assert several.holds(ACTION, begins=True) is holds


def test_each_is_told_what_happens():
    ones = [One(), One()]
    several = CombinedHolding(ones)
    several.tell(4)
    several.ended()
    assert [one.told for one in ones] == [[4, "ended"]] * 2
