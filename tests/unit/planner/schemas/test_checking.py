# SPDX-License-Identifier: Apache-2.0
"""What a schema refuses, in sentences; and what is left of a document without its mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from planner.planners.solution_schema import SCHEMA
from planner.schemas import checking


def said(schema: dict[str, Any], value: object) -> list[str]:
    return [str(mistake) for mistake in checking.compiled(schema)(value)]


@pytest.mark.parametrize(
    ("schema", "value", "sentence"),
    [
        ({"type": "string"}, 5, "document: 5 is not a text"),
        ({"type": ["number", "null"]}, "x", "document: 'x' is not a number or null"),
        ({"type": "integer"}, 1.5, "document: 1.5 is not a whole number"),
        ({"type": "boolean"}, "yes", "document: 'yes' is not true or false"),
        ({"type": "array"}, {}, "document: {} is not a list"),
        ({"minimum": 1}, 0, "document: 0 is less than 1"),
        ({"maximum": 1}, 2, "document: 2 is more than 1"),
        ({"exclusiveMinimum": 0}, 0, "document: 0 is not more than 0"),
        ({"minLength": 1}, "", "document: '' is too short: at least 1 characters"),
        (
            {"required": ["its owner's name"]},
            {},
            'document: the field "its owner\'s name" is missing',
        ),
        ({"minItems": 2}, [1], "document: too short: at least 2 entries"),
        ({"pattern": "^a$"}, "b", "document: 'b' is not of the form ^a$"),
        ({"pattern": "^a$", "title": "an a"}, "b", "document: 'b' is not an a"),
        (
            {"enum": ["live", "cold"]},
            "coold",
            "document: 'coold' is not accepted; did you mean 'cold'? Known: cold, live",
        ),
        ({"pattern": "^(a$|b)"}, "a\n", "document: 'a\\n' is not of the form ^(a$|b)"),
        ({"items": {"type": "string", "pattern": "^a$"}}, ["a\n"], "[0]: 'a\\n' is not of"),
        (
            {"anyOf": [{"required": ["argv"]}, {"required": ["host", "port"]}]},
            {},
            "document: the field 'argv', or 'host' and 'port' is missing",
        ),
        ({"required": ["flavor"]}, {}, "document: the field 'flavor' is missing"),
        (
            {"properties": {"flavor": {}}, "additionalProperties": False},
            {"flavr": 1},
            "flavr: not a field here; did you mean 'flavor'? Known: flavor",
        ),
        ({"anyOf": [{"type": "object"}, {"type": "integer"}]}, "x", "document: 'x' is not a"),
        (
            {
                "properties": {"flavor": {}},
                "patternProperties": {"^x": {}, "y$": {}},
                "additionalProperties": False,
            },
            {"x1": 1, "by": 1, "flavr": 1},
            "flavr: not a field here; did you mean 'flavor'? Known: flavor",
        ),
        (
            {"properties": {"a": {"anyOf": [False, {"required": ["b"]}]}}},
            {"a": {}},
            "a: the field 'b' is missing",
        ),
        (
            {"patternProperties": {r"^\p{Lu}$": {}}, "additionalProperties": {"type": "string"}},
            {"token": 5},
            "document: does not fit its schema: a pattern of it cannot be explained",
        ),
        (
            {"pattern": r"^\p{Lu}$"},
            "a",
            "document: does not fit its schema: a pattern of it cannot be explained",
        ),
        ({"multipleOf": 2}, 3, "document: 3 is not a multiple of 2"),
    ],
)
def test_a_mistake_is_a_sentence(schema: dict[str, Any], value: object, sentence: str) -> None:
    (found,) = said(schema, value)
    assert found.startswith(sentence)


def test_a_long_value_is_cut() -> None:
    (found,) = said({"type": "integer"}, "x" * 500)
    assert len(found) < 100


def test_mistakes_stand_in_the_order_of_the_document() -> None:
    schema = {"items": {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}}}
    value = [{"b": 1, "a": 1}, *[{}] * 10, {"a": 2}]
    assert [mistake.path for mistake in checking.compiled(schema)(value)] == [
        (0, "a"),
        (0, "b"),
        (11, "a"),
    ]


def test_what_fits_has_no_mistakes() -> None:
    assert said(SCHEMA, {"actions": [{"action_type": "nop"}]}) == []


def test_a_schema_that_is_wrong_is_refused() -> None:
    with pytest.raises(ValueError, match="its schema is wrong: 'txt' is not valid"):
        checking.compiled({"type": "txt"})


def readable(value: object) -> checking.Readable | None:
    check = checking.compiled(SCHEMA)
    return checking.readable(check, value, check(value))


def test_a_document_without_mistakes_is_left_whole() -> None:
    document = {"actions": [{"action_type": "nop"}]}
    left = readable(document)
    assert left is not None
    assert left.value is document


def test_wrong_fields_are_taken_out_of_a_copy() -> None:
    document = {"actions": [{"action_type": "nop", "colour": "red", "retries": "x"}], "naem": 1}
    left = readable(document)
    assert left is not None
    assert left.value == {"actions": [{"action_type": "nop"}]}
    assert document["naem"] == 1


def test_entries_that_cannot_be_read_are_taken_out_and_the_others_keep_their_places() -> None:
    left = readable(
        {"actions": [{"action_typ": "x"}, {"action_type": "nop"}, 5, {"action_type": "a"}]}
    )
    assert left is not None
    assert left.value == {"actions": [{"action_type": "nop"}, {"action_type": "a"}]}
    assert left.path(("actions", 1, "name")) == ("actions", 3, "name")
    assert left.path(("actions",)) == ("actions",)
    assert left.path(("facts", "hosts")) == ("facts", "hosts")


@pytest.mark.parametrize("value", [[], "x", {}, {"actions": "all"}])
def test_where_nothing_can_be_read_nothing_is_left(value: object) -> None:
    assert readable(value) is None


def test_what_must_not_be_together_is_told_in_the_words_of_its_title():
    schema = {"not": {"required": ["a", "b"], "title": "either a or b, not both"}}
    (mistake,) = checking.compiled(schema)({"a": 1, "b": 2})
    assert mistake.text == "either a or b, not both"
    assert list(checking.compiled(schema)({"a": 1})) == []
