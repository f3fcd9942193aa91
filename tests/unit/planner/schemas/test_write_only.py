# SPDX-License-Identifier: Apache-2.0
"""What a schema marks as ``writeOnly`` is hidden, by whichever keyword it is reached."""

from __future__ import annotations

import pytest

from planner.schemas import checking
from planner.schemas.checking import in_place
from planner.schemas.hidden_values import HIDDEN, has_hidden, hidden, hidden_texts

ENV = {"secret": "env A_1"}
MARK = {"type": "string", "writeOnly": True}
#: An object whose field ``a`` is hidden.
A = {"properties": {"a": MARK}}
SEEN, HIDDEN_A = {"a": "x", "b": "x"}, {"a": HIDDEN, "b": "x"}


#: A schema, a value, and what is seen of it.
MARKED = [
    ({"properties": {"a": MARK}}, SEEN, HIDDEN_A),
    ({"properties": {"a": MARK}}, {"a": ENV}, {"a": ENV}),
    ({"additionalProperties": {"writeOnly": True}}, {"a": {"b": [1]}}, {"a": {"b": [HIDDEN]}}),
    ({"properties": {"b": {}}, "additionalProperties": MARK}, SEEN, HIDDEN_A),
    *(
        ({"patternProperties": {pattern: {}}, "additionalProperties": MARK}, {"clé": "x"}, hidden_e)
        for pattern in (r"^\p{Lu}+$", r"^\w+$", "(?u)y", "y{99999999999}")
        for hidden_e in [{"clé": HIDDEN}]
    ),
    ({"properties": {"a": {"items": MARK}}}, {"a": ["x"]}, {"a": [HIDDEN]}),
    ({"prefixItems": [{}], "items": MARK}, ["x", "y"], [HIDDEN, HIDDEN]),
    ({"$ref": "#/$defs/s", "$defs": {"s": A}}, SEEN, HIDDEN_A),
    ({"properties": {"a": {"type": "string"}}}, {"a": "x"}, {"a": "x"}),
    ({"properties": {"a": MARK}, "not": False, "items": True}, {"b": ["x"]}, {"b": ["x"]}),
    ({"properties": {"a": MARK}}, None, None),
]
#: Schemas whose marks are under keywords that are not followed.
MARKED_ELSEWHERE = [
    *({keyword: MARK} for keyword in ("unevaluatedProperties", "propertyNames")),
    *({keyword: {"x": A}} for keyword in ("patternProperties", "dependentSchemas")),
    *({"items": {}, keyword: MARK} for keyword in ("contains", "unevaluatedItems")),
    *({keyword: [{}, A]} for keyword in ("oneOf", "anyOf", "allOf", "prefixItems")),
    *({keyword: A} for keyword in ("if", "then", "else", "not")),
    {"allOf": [{"properties": {"a": {}}}, A]},
    {"contentSchema": A},
]


def test_what_a_schema_marks_is_hidden():
    found = [(schema, value, hidden(in_place(schema), value)) for schema, value, _ in MARKED]
    assert found == MARKED
    assert [has_hidden(seen) for _, _, seen in MARKED] == [s != value for _, value, s in MARKED]


@pytest.mark.parametrize("schema", MARKED_ELSEWHERE)
@pytest.mark.parametrize("value", [SEEN, ["x", "y"], "x"])
def test_a_value_with_a_mark_under_another_keyword_is_hidden_as_a_whole(schema, value):
    inside = {"properties": {"v": schema, "w": {}}}
    assert hidden(inside, {"v": value, "w": "x"}) == {"v": HIDDEN, "w": "x"}


def test_the_texts_that_are_hidden_are_known_with_the_names_of_fields_among_them():
    schema = {"properties": {"a": MARK, "b": {"propertyNames": MARK}}}
    value = {"a": "x", "b": {"y": ["z", 1]}, "c": "w"}
    assert hidden_texts(schema, value) == ["x", "y", "z"]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"allOf": [{"maxLength": 3}, MARK]}}},
        {"properties": {"a": {"allOf": [{"type": "integer"}, MARK]}}},
        {"properties": {"a": {"enum": ["swordfisch"]}}, "allOf": [A]},
        {"properties": {"a": {"const": "x"}}, "anyOf": [{"required": ["b"]}, A]},
        {"properties": {"a": False}, "allOf": [A]},
        {"properties": {"a": {"format": "x", "pattern": "^x$"}}, "if": A},
        {"enum": [{"a": "x"}], "allOf": [A]},
        {"maxProperties": 0, "allOf": [A]},
        {"anyOf": [{"properties": {"a": {"type": "integer"}}}, {"required": ["b"]}], "not": A},
        {"propertyNames": {"pattern": "^x", "writeOnly": True}},
        {"additionalProperties": False, "propertyNames": {"allOf": [MARK]}},
        {"propertyNames": MARK, "additionalProperties": {"type": "integer"}},
    ],
)
def test_no_mistake_repeats_what_is_hidden(schema):
    value = {"a": "swordfish"}
    if "propertyNames" in schema:
        value = {"swordfish": "a"}
    mistakes = checking.compiled(schema)(value)
    assert mistakes
    assert not [m for m in mistakes if "swordfish" in str(m)]
