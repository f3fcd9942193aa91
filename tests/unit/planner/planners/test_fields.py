# SPDX-License-Identifier: Apache-2.0
"""Every field of every kind of document: which values are accepted, and what is refused.

A file of ``tests/cases/fields`` has a ``document`` with every field of its kind. ``required`` are
the fields that cannot be left out, ``any_field`` the mappings that accept any field, ``names`` the
mappings from any name to what the schema describes, ``values`` what is accepted and refused in one
place. A place is a list of keys and indexes; ``*`` is any of them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

import pytest

from planner import documents
from planner.errors import Path, path_text
from planner.making import planning, registry

FILES = sorted((FilePath(__file__).parents[3] / "cases" / "fields").glob("*.yaml"))
CASES = {file.stem: documents.read(file).value for file in FILES}
EACH_CASE = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
LEFT_OUT = object()


def refused(case: Mapping[str, Any], place: Sequence[str | int], value: object) -> list[str]:
    """Return what the schema says about the document of a case with one value changed."""
    changed = copy.deepcopy(case["document"])
    inside = changed
    for part in place[:-1]:
        inside = inside[part]
    if value is LEFT_OUT:
        del inside[place[-1]]
    elif place:
        inside[place[-1]] = value
    return [str(m) for m in planning.check_of(registry.planner(case["planner"]))(changed)]


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield each place of a document with its value."""
    yield path, value
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(below, (*path, key))


def meant(place: Path, patterns: Sequence[Sequence[str | int]]) -> bool:
    """Tell whether a place is one of those that are listed."""
    return any(
        len(place) == len(pattern)
        and all(p in ("*", part) for p, part in zip(pattern, place, strict=True))
        for pattern in patterns
    )


def is_free(place: Path, case: Mapping[str, Any]) -> bool:
    """Tell whether a place is below a mapping that accepts any field."""
    return any(meant(place[:n], case["any_field"]) for n in range(len(place)))


@EACH_CASE
def test_a_document_with_every_field_is_accepted(case: Mapping[str, Any]) -> None:
    assert refused(case, (), None) == []


@EACH_CASE
def test_a_field_that_is_not_known_is_refused_wherever_it_is(case: Mapping[str, Any]) -> None:
    wrong = []
    for place, value in places(case["document"]):
        if not isinstance(value, dict) or is_free(place, case):
            continue
        said = refused(case, (*place, "surprise"), 1)
        unknown = any(
            text.startswith(path_text((*place, "surprise: not a field"))) for text in said
        )
        if unknown == meant(place, [*case["any_field"], *case["names"]]):
            wrong.append((place, said))
    assert not wrong


@EACH_CASE
def test_a_field_that_is_required_is_named_when_it_is_missing(case: Mapping[str, Any]) -> None:
    wrong = []
    for place, _ in places(case["document"]):
        if not place or not isinstance(place[-1], str) or is_free(place, case):
            continue
        said = refused(case, place, LEFT_OUT)
        missing = any(f"the field {place[-1]!r} is missing" in text for text in said)
        if missing != meant(place, case["required"]):
            wrong.append((place, said))
    assert not wrong


@EACH_CASE
def test_a_value_is_accepted_or_refused_with_its_place(case: Mapping[str, Any]) -> None:
    wrong = []
    for entry in case["values"]:
        at, place = entry["at"], path_text(tuple(entry["at"]))
        for value in entry["accepted"]:
            if said := refused(case, at, value):
                wrong.append((place, value, said))
        for value in entry["refused"]:
            said = refused(case, at, value)
            if not said or not all(text.startswith(place) for text in said):
                wrong.append((place, value, said))
    assert not wrong


@EACH_CASE
def test_every_field_has_values_that_are_tried(case: Mapping[str, Any]) -> None:
    listed = [*case["any_field"], *(entry["at"] for entry in case["values"])]
    assert [
        place
        for place, value in places(case["document"])
        if place
        and not isinstance(value, dict | list)
        and not is_free(place, case)
        and not meant(place, listed)
    ] == []
