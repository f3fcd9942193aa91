# SPDX-License-Identifier: Apache-2.0
"""A schema with a reference that leads nowhere is refused."""

from __future__ import annotations

import pytest

from planner import schema_errors
from planner.schema_references import placed

LEADS_NOWHERE = [
    {"properties": {"a": {"$ref": "#/$defs/b"}}},
    {"allOf": [{"$ref": "#b"}]},
    {"$dynamicRef": "#b"},
    {"$ref": "https://nowhere/b"},
    {"$ref": "https://[/b"},
    {"$ref": "#/$defs/b", "$defs": {"b": {"$ref": "#/$defs/c"}}},
    {"$ref": "#/x/b", "x": {"b": {"not": {"$ref": "#c"}}}},
    {"$ref": "#/title", "title": "b"},
]
LEADS_TO_A_WRONG_SCHEMA = [
    {"properties": {"a": {"$ref": "#/x"}}, "x": {"allOf": 7}},
    {"$ref": "#/x", "x": {"type": 7}},
    {"$ref": "#/x/a", "x": {"a": {"$ref": "#/x/b"}, "b": {"properties": {"c": 7}}}},
]
LEADS_TO_A_SCHEMA = [
    {"$ref": "#"},
    {"$ref": "#/$defs/b", "$defs": {"b": False}},
    {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    {"$ref": "b#c", "$id": "https://a/", "$defs": {"b": {"$id": "b", "items": {"$anchor": "c"}}}},
    {"$dynamicRef": "#b", "$defs": {"b": {"$dynamicAnchor": "b", "$ref": "#"}}},
    {"properties": {"$ref": {"type": "string"}}},
    {"const": {"$ref": "#/nowhere"}},
    {"$ref": "#/x", "x": {"properties": {"a": {"$ref": "#/x"}}}},
]


@pytest.mark.parametrize("schema", LEADS_NOWHERE)
def test_a_reference_that_leads_nowhere_is_refused(schema):
    with pytest.raises(ValueError, match="which leads to no schema in it"):
        schema_errors.require_valid(schema)


@pytest.mark.parametrize("schema", LEADS_TO_A_WRONG_SCHEMA)
def test_a_reference_that_leads_to_a_wrong_schema_is_refused(schema):
    with pytest.raises(ValueError, match="its schema is wrong: 7 is not"):
        schema_errors.require_valid(schema)


@pytest.mark.parametrize("schema", LEADS_TO_A_SCHEMA)
def test_other_references_are_not(schema):
    schema_errors.require_valid(schema)


def test_what_resolves_references_is_built_once_for_each_of_the_last_schemas():
    schemas = [{"$ref": "#/x", "x": {"title": str(i // 2)}} for i in range(200)]
    for schema in schemas:
        assert placed(schema) is placed(schema)
        assert placed(schema).schema is schema
    first = placed(schemas[0])
    assert first.schema is schemas[0]
