# SPDX-License-Identifier: Apache-2.0
"""What holds for every store."""

from __future__ import annotations

import pytest

from applier.errors import PlanNotFound
from applier.storage import rules
from planner.states import PlanState


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (None, None),
        ("", ""),
        ("a" * rules.OUTPUT_LIMIT, "a" * rules.OUTPUT_LIMIT),
        ("b" + "a" * rules.OUTPUT_LIMIT, "a" * rules.OUTPUT_LIMIT),
        # The first character that is kept would be cut in two.
        ("é" + "a" * (rules.OUTPUT_LIMIT - 1), "a" * (rules.OUTPUT_LIMIT - 1)),
        ("\0\ud800\N{SNOWMAN}", "\N{REPLACEMENT CHARACTER}?\N{SNOWMAN}"),
    ],
)
def test_the_end_of_a_text_is_kept(text, kept):
    assert rules.kept(text) == kept


@pytest.mark.parametrize(
    ("uuids", "short"),
    [
        ([], []),
        (["12345678-aaaa"], ["12345678"]),
        (["22345678-aaaa", "12345678-aaaa"], ["12345678", "22345678"]),
        (["12345678-aaaa", "12345678-abaa"], ["12345678-aa", "12345678-ab"]),
        (["1", "12", "123456789"], ["1", "12", "12345678"]),
        (["12345678", "123456789"], ["12345678", "123456789"]),
    ],
)
def test_beginnings_are_as_long_as_tells_them_apart(uuids, short):
    assert rules.beginnings(uuids) == short


def test_a_beginning_that_is_also_a_name_of_the_same_plan_is_that_plan():
    assert rules.choose("abcd", [("abcdef", "abcd")]) == "abcdef"


def test_a_name_may_be_shorter_than_a_beginning():
    assert rules.choose("a", [("abcdef", None), ("bcdefg", "a")]) == "bcdefg"
    with pytest.raises(PlanNotFound, match="no plan 'b'"):
        rules.choose("b", [("bcdefg", "a")])


def test_the_states_in_which_nobody_runs_a_plan_any_more():
    kept = {PlanState.ONGOING, PlanState.CANCELLING}
    assert {state for state in PlanState if not rules.gives_up(state)} == kept
