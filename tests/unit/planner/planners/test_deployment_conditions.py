# SPDX-License-Identifier: Apache-2.0
"""Conditions of tasks: read, never executed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.planners.deployment.conditions import DEEPEST, Condition, InvalidCondition

SETTINGS: dict[str, Any] = {
    "a": {"on": True, "off": False, "one": 1, "text": "x y", "none": None, "list": ["x", 2]},
    "dotted-key": {"deep": {"er": "yes"}},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("settings:a.on", True),
        ("settings:a.on == true", True),
        ("settings:a.one == true", False),
        ("settings:a.one == 1", True),
        ("settings:a.one == 1.0", True),
        ("settings:a.one != 2", True),
        ("settings:a.text == 'x y'", True),
        ('settings:a.text == "x y"', True),
        ("settings:dotted-key.deep.er == yes", True),
        ("settings:a.none == null", True),
        ("2 in settings:a.list", True),
        ("true in settings:a.list", False),
        ("'x' in settings:a.text", True),
        ("'x' in settings:a.one", False),
        ("not settings:a.off", True),
        ("not not settings:a.off", False),
        # and binds more strongly than or, not more strongly than both
        ("true or false and false", True),
        ("(true or false) and false", False),
        ("not false and false", False),
        ("not (settings:a.on and settings:a.off)", True),
        ("settings:a.on==true and(settings:a.one==1)", True),
        ("settings:nowhere.at.all == null", True),
        ("settings:a.on.deeper?", False),
    ],
)
def test_a_condition_holds_or_not(text: str, expected: bool) -> None:
    assert Condition(text).holds(SETTINGS) is expected


@st.composite
def combined(draw: Any, depth: int = 0) -> tuple[str, bool]:
    """A condition with every part in parentheses, and its value."""
    kind = draw(st.sampled_from(["constant"] if depth > 6 else ["constant", "not", "and", "or"]))
    if kind == "constant":
        value = draw(st.booleans())
        return draw(st.sampled_from([str(value).lower(), f"(1 == {int(value)})"])), value
    left, first = draw(combined(depth + 1))
    if kind == "not":
        return f"(not {left})", not first
    right, second = draw(combined(depth + 1))
    return f"({left} {kind} {right})", first and second if kind == "and" else first or second


@given(combined())
def test_parentheses_decide_what_is_combined_first(condition: tuple[str, bool]) -> None:
    text, value = condition
    assert Condition(text).holds({}) is value


@given(st.lists(st.tuples(st.sampled_from(["and", "or"]), st.booleans()), min_size=1))
def test_without_parentheses_a_row_of_or_holds_if_one_of_its_rows_of_and_does(
    row: list[tuple[str, bool]],
) -> None:
    text = "".join(f" {sign} {str(value).lower()}" for sign, value in row).split(" ", 2)[2]
    rows_of_and: list[list[bool]] = [[]]
    for k, (sign, value) in enumerate(row):
        if sign == "or" and k:
            rows_of_and.append([])
        rows_of_and[-1].append(value)
    assert Condition(text).holds({}) is any(map(all, rows_of_and))


@pytest.mark.parametrize("one", ["(true)", "not false"])
def test_only_nesting_is_limited_not_how_many_stand_side_by_side(one: str) -> None:
    assert Condition(" and ".join([one] * 3 * DEEPEST)).holds({})
    deepest = "(" * DEEPEST + "true" + ")" * DEEPEST
    assert Condition(f"{deepest} and {deepest}").holds({})


def test_what_is_missing_is_told_unless_it_may_be() -> None:
    missing: list[str] = []
    Condition("settings:a.b == 1 or settings:c? or settings:a.on").holds(SETTINGS, missing.append)
    assert missing == ["a.b"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "a value is expected at the end"),
        ("settings:a ==", "a value is expected at the end"),
        ("settings:a = 1", "'=' is not understood"),
        ("(settings:a", "')' is expected at the end"),
        ("settings:a 1", "'and', 'or' or the end is expected at '1'"),
        ("cluster:mode == 'ha'", "there is no 'cluster'"),
        ("__import__('os')", "'and', 'or' or the end is expected at '('"),
        ("not " * (DEEPEST + 1) + "true", "parentheses are nested more than 100"),
        ("and", "a value is expected at 'and'"),
        ("1 == 1 == 1", "'and', 'or' or the end is expected at '=='"),
        ("true and 1 in 1 == 1", "'and', 'or' or the end is expected at '=='"),
        ("not 1 == 1 != 1", "'and', 'or' or the end is expected at '!='"),
        ("1 == not 1", "a value is expected at 'not'"),
    ],
)
def test_what_is_no_condition_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InvalidCondition) as refused:
        Condition(text)
    assert sentence in str(refused.value)
