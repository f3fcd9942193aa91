# SPDX-License-Identifier: Apache-2.0
"""Failure budgets as they are written: their units of time, and what is the most of each part."""

from __future__ import annotations

import pytest

from planner.failure_budget import budget, budgets


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1 in 90s", 90), ("1 in 2m", 120), ("1 in 3h", 10_800), ("1 in 2d", 172_800), ("1", None)],
)
def test_a_time_has_a_unit(text, seconds):
    assert budget(text).within_s == seconds


def test_a_budget_is_a_number_or_a_share():
    assert budget("migrate=100%")[:3] == ("migrate", None, 100)
    assert budget("migrate=100")[:3] == ("migrate", 100, None)
    assert budget("0")[:3] == (None, 0, None)


def test_a_share_of_few_actions_is_rounded_down():
    assert [budget("migrate=50%").allowed(n) for n in (0, 1, 2, 3, 200)] == [0, 0, 1, 1, 100]
    assert budget("migrate=0%").allowed(10) == 0


@pytest.mark.parametrize("text", ["1234567890", "1 in 1234567890s", "1 in 0s"])
def test_a_number_has_at_most_nine_digits(text):
    assert budget("123456789 in 123456789s").most == 123_456_789
    with pytest.raises(ValueError, match="is not N, TYPE=N"):
        budget(text)


def test_a_budget_that_is_written_twice_is_one():
    assert budgets("3 in 1h, , 3  in 1h\n2") == ("3 in 1h", "2")
