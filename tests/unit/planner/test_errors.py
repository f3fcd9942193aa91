# SPDX-License-Identifier: Apache-2.0
"""Errors are facts first, and a sentence second."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.cli.program import refusal
from planner import errors
from planner.errors import InvalidInput, InvalidPlan, Mistake, UnknownPlugin, accepted, path_text
from planner.schemas import schema_errors


def test_every_error_is_a_planner_error() -> None:
    named = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    assert len(named) == 7
    assert all(issubclass(error, errors.PlannerError) for error in named)


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (Mistake("odd"), "document: odd"),
        (Mistake("odd", ("a", 0)), "a[0]: odd"),
        (Mistake("odd", ("a",), "f:3"), "f:3: a: odd"),
        (Mistake("odd", place="f:3"), "f:3: odd"),
    ],
)
def test_a_mistake_begins_with_its_place(mistake: Mistake, text: str) -> None:
    assert str(mistake) == text


def test_mistakes_are_located_where_they_have_no_place_yet() -> None:
    wrong = InvalidInput([Mistake("one", ("a",)), Mistake("two", ("b",), "conf:1")])
    assert str(wrong.located(lambda path: f"f:{len(path)}")) == "f:1: a: one\nconf:1: b: two"


def test_a_path_is_written_as_people_write_it() -> None:
    assert path_text(("facts", "hosts", 0, "name")) == "facts.hosts[0].name"
    assert path_text(()) == ""


def test_what_is_accepted_is_none_where_there_is_none() -> None:
    assert accepted("x", []) == "Known: none"


def listing(number: int) -> list[Mistake]:
    return [Mistake(f"wrong {i}", ("a", i)) for i in range(number)]


@pytest.mark.parametrize("number", [1, 19, 20])
def test_up_to_twenty_mistakes_are_shown(number: int) -> None:
    lines = str(InvalidInput(listing(number))).splitlines()
    assert lines == list(map(str, listing(number)))


@pytest.mark.parametrize("number", [21, 22, 5000])
def test_of_more_mistakes_twenty_are_shown_and_the_others_counted(number: int) -> None:
    wrong = InvalidInput(listing(number))
    assert len(wrong.mistakes) == number
    assert str(wrong).splitlines() == [*map(str, listing(20)), f"and {number - 20} more"]
    told = refusal(wrong).splitlines()
    assert told[0] == f"Refused, {number} mistakes:"
    assert [line.strip() for line in told[1:]] == str(wrong).splitlines()


def test_the_problems_of_a_plan_are_bounded_too() -> None:
    assert str(InvalidPlan(Mistake(f"p{i}") for i in range(23))).endswith("p19; and 3 more")


LONG = "v" * 4000


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput([Mistake(f"no such flavor {LONG!r}; did you mean 'a'?")]),
        InvalidInput([Mistake(f"no such flavor {LONG + chr(39)!r}; did you mean 'a'?")]),
        InvalidInput([Mistake(f"{LONG + chr(39) + chr(34)!r} is the planner's own")]),
        InvalidInput([Mistake("odd", ("actions", LONG, 3))]),
        InvalidInput([Mistake("odd", place=f"--set {LONG}")]),
        InvalidInput([Mistake(LONG)]),
        InvalidInput(schema_errors.find({"type": "integer"}, LONG)),
        InvalidInput(schema_errors.find({"type": "integer"}, [LONG])),
        InvalidInput(schema_errors.find({"maxLength": 5}, LONG)),
        InvalidInput(schema_errors.find({"uniqueItems": True}, [LONG] * 9)),
        InvalidInput(schema_errors.find({"enum": ["a"]}, LONG)),
        InvalidInput(schema_errors.find({"additionalProperties": False}, {LONG: 1})),
        InvalidInput(schema_errors.find({"propertyNames": {"pattern": "^a$"}}, {LONG: 1})),
        UnknownPlugin("planner", LONG, ["weight"]),
        UnknownPlugin("planner", "x", [f"{LONG}{i}" for i in range(30)]),
    ],
    ids=range(15),
)
def test_long_values_are_shortened_with_their_length(error: Exception) -> None:
    told = refusal(error)
    assert len(told) < 2200
    assert re.search(r"\.\.\.['\"]? \(\d+ characters\)", told)


def test_what_follows_a_long_value_is_still_read() -> None:
    told = str(Mistake(f"the task's node {LONG!r} is not there; did you mean 'a'?"))
    assert told.startswith("document: the task's node 'vvv")
    assert "' (4000 characters) is" in told
    assert told.endswith(" 'a'?")


#: Not long, even with escapes.
SHORT = st.text(max_size=60).filter(lambda text: len(repr(text)) <= 102)


@given(st.text(max_size=300), SHORT)
def test_the_value_in_a_message_is_whole_or_shortened(value: str, more: str) -> None:
    told = str(Mistake(f"no flavor {value!r}; {more!r} is one"))
    inside = repr(value)[1:-1]
    if len(inside) <= 100:
        assert told == f"document: no flavor {value!r}; {more!r} is one"
    else:
        start = repr(value)[:81]
        assert told.startswith(f"document: no flavor {start}...{start[0]} ({len(inside)} char")
        assert told.endswith(f"; {more!r} is one")


def test_after_twenty_mistakes_no_similar_name_is_looked_for() -> None:
    known = [f"node-{i}" for i in range(50)]
    assert "did you mean 'node-7'" in accepted("node-7x", known, range(errors.MOST_SHOWN - 1))
    assert accepted("node-7x", known, range(errors.MOST_SHOWN)) == "known names: see above"
