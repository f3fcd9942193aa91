# SPDX-License-Identifier: Apache-2.0
"""Errors are facts first, and a sentence second."""

from __future__ import annotations

import pytest

from planner import errors
from planner.errors import InvalidInput, Mistake, accepted, path_text


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
