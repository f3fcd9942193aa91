# SPDX-License-Identifier: Apache-2.0
"""Patterns of names: which are plain, and what the others match."""

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
