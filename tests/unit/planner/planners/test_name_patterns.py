# SPDX-License-Identifier: Apache-2.0
"""Patterns of names: which are plain, and what the others match."""

import re

import pytest

from planner.planners.deployment.name_patterns import Patterns

NAMES = ["a", "a.b", "ab", "*"]


@pytest.mark.parametrize(
    ("pattern", "whole", "exact"),
    [
        ("a", ["a"], ["a"]),
        # Alone it is no expression. The planner itself knows it as every name.
        ("*", ["*"], ["*"]),
        ("a.b", ["a.b"], ["a.b"]),
        ("a.*", ["a", "a.b", "ab"], []),
        ("/a/", ["a", "a.b", "ab"], ["a", "a.b", "ab"]),
    ],
)
def test_which_names_match(pattern: str, whole: list[str], exact: list[str]) -> None:
    assert Patterns().among(NAMES, pattern) == whole
    assert Patterns(exact=True).among(NAMES, pattern) == exact
    assert Patterns().is_plain(pattern) is (pattern in ("a", "*"))


def test_no_pattern_takes_for_ever() -> None:
    names = ["a" * 255, "a" * 254 + "b"]
    for pattern in ("a*a*a*a*a*a*a*a*b", "(a+)+b", "(a|a)*b", ".*.*.*.*.*.*b", "/a*a*a*a*a*a*a*b/"):
        assert Patterns().among(names, pattern) == names[1:], pattern


def test_what_cannot_be_found_in_linear_time_is_no_pattern() -> None:
    for pattern in ("(?!a)b", r"(a)\1", "/(?<=a)b/", "(", "a{99999999999999999999}"):
        with pytest.raises(re.error):
            Patterns().test(pattern)
    assert Patterns().among(NAMES, "/(?i)A.B/") == ["a.b"]
