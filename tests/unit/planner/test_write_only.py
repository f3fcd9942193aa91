# SPDX-License-Identifier: Apache-2.0
"""What a schema marks as ``writeOnly`` is hidden, by whichever keyword it is reached."""

from __future__ import annotations

import pytest

from planner import checking
from planner.schema_references import Placed
from planner.secret_references import HIDDEN, has_hidden
from planner.write_only import hidden, hidden_texts

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
    ({"patternProperties": {"^p": MARK}}, {"pw": "x", "a": "x"}, {"pw": HIDDEN, "a": "x"}),
    ({"patternProperties": {r"^\p{L}": MARK}}, {"pw": "x"}, {"pw": HIDDEN}),
    ({"patternProperties": {r"^\W": MARK}}, {"é": "x"}, {"é": HIDDEN}),
    *(
        ({"patternProperties": {pattern: {}}, others: MARK}, {"clé": "x"}, {"clé": HIDDEN})
        for pattern in (r"^\p{Lu}+$", r"^\w+$", "(?u)y", "y{99999999999}")
        for others in ("additionalProperties", "unevaluatedProperties")
    ),
    (
        {"properties": {"a": {}}, "patternProperties": {"a": MARK}, "additionalProperties": {}},
        SEEN,
        HIDDEN_A,
    ),
    ({"properties": {"b": {}}, "additionalProperties": MARK}, SEEN, HIDDEN_A),
    ({"properties": {"b": {}}, "unevaluatedProperties": MARK}, SEEN, HIDDEN_A),
    ({"propertyNames": MARK}, {"a": 1}, HIDDEN),
    ({"properties": {"a": {"items": MARK}}}, {"a": ["x"]}, {"a": [HIDDEN]}),
    ({"properties": {"a": {"prefixItems": [MARK]}}}, {"a": ["x", "y"]}, {"a": [HIDDEN, "y"]}),
    ({"prefixItems": [{}], "items": MARK}, ["x", "y"], ["x", HIDDEN]),
    ({"prefixItems": [{}], "unevaluatedItems": MARK}, ["x", "y"], ["x", HIDDEN]),
    ({"prefixItems": [{}], "contains": MARK}, ["x", "y"], [HIDDEN, HIDDEN]),
    ({"contentSchema": A}, "{}", HIDDEN),
    ({"contentSchema": {"$ref": "#/$defs/s"}, "$defs": {"s": A}}, "{}", HIDDEN),
    *(({keyword: [{}, A]}, SEEN, HIDDEN_A) for keyword in ("oneOf", "anyOf", "allOf")),
    *(({keyword: A}, SEEN, HIDDEN_A) for keyword in ("if", "then", "else", "not")),
    ({"dependentSchemas": {"b": A}}, SEEN, HIDDEN_A),
    (
        {"allOf": [{"properties": {"a": {}}}, {"$ref": "#/$defs/s"}], "$defs": {"s": A}},
        SEEN,
        HIDDEN_A,
    ),
    ({"properties": {"a": {"$ref": "#/properties/b"}, "b": MARK}}, {"a": "x"}, {"a": HIDDEN}),
    (
        {"properties": {"a": {"$ref": "#s"}}, "x": 1, "$defs": {"s": {"$anchor": "s", **MARK}}},
        SEEN,
        HIDDEN_A,
    ),
    ({"$ref": "https://a/b", "$defs": {"b": {"$id": "https://a/b", **A}}}, SEEN, HIDDEN_A),
    (
        {
            "$id": "https://a/tree",
            "$ref": "list",
            "$defs": {
                "secret": {"$dynamicAnchor": "entry", **MARK},
                "list": {
                    "$id": "list",
                    "items": {"$dynamicRef": "#entry"},
                    "$defs": {"any": {"$dynamicAnchor": "entry"}},
                },
            },
        },
        ["x"],
        [HIDDEN],
    ),
    ({"properties": {"next": {"$ref": "#"}, "a": MARK}}, {"next": SEEN}, {"next": HIDDEN_A}),
    ({"$ref": "#/$defs/gone", "$defs": {"b": MARK}}, SEEN, {"a": HIDDEN, "b": HIDDEN}),
    ({"properties": {"a": {"type": "string"}}}, {"a": "x"}, {"a": "x"}),
    ({"properties": {"a": MARK}, "not": False, "items": True}, {"b": ["x"]}, {"b": ["x"]}),
    ({"properties": {"a": MARK}}, None, None),
]


def test_what_a_schema_marks_is_hidden():
    found = [(schema, value, hidden(schema, value)) for schema, value, _ in MARKED]
    assert found == MARKED
    assert [has_hidden(seen) for _, _, seen in MARKED] == [s != value for _, value, s in MARKED]


def test_the_texts_that_are_hidden_are_known_with_the_names_of_fields_among_them():
    schema = {"properties": {"a": MARK, "b": {"propertyNames": MARK}}}
    value = {"a": "x", "b": {"y": ["z", 1]}, "c": "w"}
    assert hidden_texts(schema, value) == ["x", "y", "z"]


def test_references_are_followed_once_and_not_for_each_entry(monkeypatch):
    followed, targets = [], Placed.targets
    monkeypatch.setattr(Placed, "targets", lambda one: followed.append(one) or targets(one))
    schema = {"items": {"$ref": "#/$defs/s"}, "$defs": {"s": A}}
    assert hidden(schema, [SEEN] * 100) == [HIDDEN_A] * 100
    assert len(followed) == 1


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
