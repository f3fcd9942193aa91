# SPDX-License-Identifier: Apache-2.0
"""Local definitions are put in place, and every other reference is refused."""

from __future__ import annotations

import pytest

from planner.schemas import checking
from planner.schemas.checking import in_place

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"$ref": "#/$defs/a", "$defs": {"a": TEXT}}, TEXT),
        ({"$ref": "#/$defs/a", "$id": "https://a/b", "$defs": {"a": False}}, False),
        (
            {"items": {"$ref": "#/$defs/a", "title": "b"}, "$defs": {"a": TEXT}},
            {"items": {"title": "b", "allOf": [TEXT]}},
        ),
        (
            {"allOf": [{}], "$ref": "#/$defs/a", "$defs": {"a": TEXT}},
            {"allOf": [{}, TEXT]},
        ),
        (
            {
                "anyOf": [{"$ref": "#/$defs/b"}, {"$ref": "#/$defs/a"}],
                "$defs": {"a": TEXT, "b": {"items": {"$ref": "#/$defs/a"}}},
            },
            {"anyOf": [{"items": TEXT}, TEXT]},
        ),
        (
            {"properties": {"$ref": TEXT, "$id": {"$ref": "#/$defs/a"}}, "$defs": {"a": TEXT}},
            {"properties": {"$ref": TEXT, "$id": TEXT}},
        ),
    ],
)
def test_a_definition_stands_in_place_of_a_reference_to_it(schema, found):
    assert in_place(schema) == found


def test_a_schema_without_references_is_the_same_one():
    schema = {"properties": {"a": TEXT}, "$defs": {"a": TEXT}}
    assert in_place(schema) is schema


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "$ref '#/$defs/b'"),
        ({"$ref": "#"}, "$ref '#'"),
        ({"$ref": "#/properties/a", "properties": {"a": TEXT}}, "$ref '#/properties/a'"),
        ({"allOf": [{"$ref": "#b"}], "$defs": {"b": {"$anchor": "b"}}}, "$ref '#b'"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "$ref 'https://json-schema"),
        ({"$dynamicRef": "#/$defs/b", "$defs": {"b": TEXT}}, "$dynamicRef '#/$defs/b'"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, "'#/$defs/a'"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/c"}}}, "'#/$defs/c'"),
        (
            {"items": {"$id": "https://a/b", "$ref": "#/$defs/b"}, "$defs": {"b": TEXT}},
            "$id 'https://a/b'",
        ),
    ],
)
def test_any_other_reference_is_refused(schema, told):
    for read in (in_place, checking.compiled):
        with pytest.raises(ValueError, match="leads to no schema in it") as refused:
            read(schema)
        assert told in str(refused.value)


def test_a_wrong_definition_is_refused():
    with pytest.raises(ValueError, match="its schema is wrong: 7 is not"):
        checking.compiled({"$ref": "#/$defs/x", "$defs": {"x": {"allOf": 7}}})
