# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of batches, against Heat's own and what the blueprint says."""

from __future__ import annotations

import heat_batches
import pytest

from planner.planners.rolling_update import batches

HEAT = [
    # target, capacity, max_batch_size, min_in_service, batches: (size, members)
    (1, 1, 1, 0, [(1, 1)]),
    (1, 1, 1, 4, [(2, 1), (1, 0)]),
    (10, 10, 5, 1, [(10, 5), (10, 5)]),
    (10, 10, 4, 8, [(12, 4), (12, 4), (10, 2)]),
    (10, 10, 10, 10, [(20, 10), (10, 0)]),
    (10, 10, 2, 20, [(12, 2)] * 5 + [(10, 0)]),
    (3, 4, 2, 5, [(5, 2), (4, 1), (3, 0)]),
    (4, 7, 4, 1, [(5, 4), (4, 0)]),
    (8, 12, 2, 1, [(8, 2)] * 4),
    (0, 0, 1, 0, []),
]


@pytest.mark.parametrize(("target", "capacity", "largest", "least", "expected"), HEAT)
def test_an_instance_group_is_replaced_as_heat_does(target, capacity, largest, least, expected):
    assert heat_batches.batches(target, capacity, largest, least) == expected
    found = batches.in_place(target, capacity, 0, largest, least)
    assert [(batch.size, batch.create) for batch in found] == expected


RESOURCE_GROUP = [
    (4, 4, 4, 4, [(8, 4), (8, 4), (4, 0)]),
    (5, 7, 4, 4, [(8, 4), (6, 2), (5, 0)]),
    (6, 3, 2, 0, [(5, 2), (6, 2), (6, 2)]),
    (3, 0, 4, 2, [(3, 3)]),
]


@pytest.mark.parametrize(("target", "capacity", "largest", "least", "expected"), RESOURCE_GROUP)
def test_a_resource_group_throws_its_surplus_away(target, capacity, largest, least, expected):
    assert heat_batches.resource_group_batches(target, capacity, largest, least) == expected


def test_what_is_current_costs_no_batch():
    assert batches.in_place(10, 10, 10, 1, 0) == []
    assert batches.create_first(10, 10, 9, 5) == [(11, 1, 1)]
    # Heat plans five batches here, two of them empty, and loses a member that is good.
    assert batches.in_place(4, 4, 3, 1, 4) == [(5, 1, 0), (4, 0, 1)]


def test_a_surplus_of_current_members_goes_at_once():
    assert batches.in_place(2, 5, 3, 1, 0) == [(2, 0, 3)]
    assert batches.create_first(2, 5, 3, 1) == [(5, 0, 3)]


def test_a_batch_ends_at_a_step():
    assert [b.create for b in batches.create_first(20, 20, 0, 8, [1, 2, 10])] == [1, 1, 8, 8, 2]
    assert [b.create for b in batches.in_place(20, 20, 2, 8, 0, [1, 2, 10])] == [8, 8, 2]


@pytest.mark.parametrize(
    "call",
    [
        lambda: heat_batches.batches(3, 3, 0, 0),
        lambda: heat_batches.resource_group_batches(3, 3, -1, 0),
        lambda: batches.in_place(3, 3, 0, 0, 0),
        lambda: batches.create_first(3, 3, 0, 0),
    ],
)
def test_a_batch_of_nobody_is_refused_instead_of_going_on_for_ever(call):
    with pytest.raises(ValueError, match="never ends: at least 1"):
        call()


def test_numbers_below_zero_are_refused():
    with pytest.raises(ValueError, match="-1 is less than 0"):
        heat_batches.batches(3, 3, 1, -1)
