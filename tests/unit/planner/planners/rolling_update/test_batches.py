# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of batches, where Heat has no numbers to compare: see ``test_heat``."""

from __future__ import annotations

import pytest

from planner.planners.rolling_update.batches import create_first, in_place


def test_what_is_current_costs_no_batch():
    assert in_place(10, 10, 10, 1, 0) == []
    assert create_first(10, 10, 9, 5) == [(11, 1, 1)]
    # Heat plans five batches here, two of them empty, and loses a member that is good.
    assert in_place(4, 4, 3, 1, 4) == [(5, 1, 0), (4, 0, 1)]


def test_a_surplus_of_current_members_goes_at_once():
    assert in_place(2, 5, 3, 1, 0) == [(2, 0, 3)]
    assert create_first(2, 5, 3, 1) == [(5, 0, 3)]


def test_a_batch_ends_at_a_step():
    assert [b.create for b in create_first(20, 20, 0, 8, [1, 2, 10])] == [1, 1, 8, 8, 2]
    assert [b.create for b in in_place(20, 20, 2, 8, 0, [1, 2, 10])] == [8, 8, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda: in_place(3, 3, 0, 0, 0),
        lambda: create_first(3, 3, 0, 0),
    ],
)
def test_a_batch_of_nobody_is_refused_instead_of_going_on_for_ever(call):
    with pytest.raises(ValueError, match="never ends: at least 1"):
        call()


def test_numbers_below_zero_are_refused():
    with pytest.raises(ValueError, match="-1 is less than 0"):
        in_place(3, 3, 0, 1, -1)
