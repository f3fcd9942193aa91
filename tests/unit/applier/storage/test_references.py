# SPDX-License-Identifier: Apache-2.0
"""Which plan a reference means."""

from __future__ import annotations

import pytest

from applier.errors import PlanNotFound
from applier.storage import references


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
    assert references.beginnings(uuids) == short


def test_a_beginning_that_is_also_a_name_of_the_same_plan_is_that_plan():
    assert references.choose("abcd", [("abcdef", "abcd")]) == "abcdef"


def test_a_name_may_be_shorter_than_a_beginning():
    assert references.choose("a", [("abcdef", None), ("bcdefg", "a")]) == "bcdefg"
    with pytest.raises(PlanNotFound, match="no plan 'b'"):
        references.choose("b", [("bcdefg", "a")])
