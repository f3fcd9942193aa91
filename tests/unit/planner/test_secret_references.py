# SPDX-License-Identifier: Apache-2.0
"""References to secrets in parameters: where they are accepted, and what is hidden."""

from __future__ import annotations

from typing import Any

import pytest

from planner import checking, registry
from planner.planning import ParameterCheck
from planner.secret_references import accepting, labelled, reference

ENV = {"secret": "env A_1"}
TYPES = registry.ActionTypes()


@pytest.mark.parametrize(
    "value",
    ["env A", "env", "env 1A", "env A B", "envA", "file", "file a", "file ~/a", "file /a\n", "A"],
)
def test_what_is_a_reference(value):
    assert (reference({"secret": value}) is not None) == (value == "env A")
    assert reference({"secret": value, "more": 1}) is None


def strings(value, path=()):
    """List the paths of all texts in a value."""
    if isinstance(value, str):
        return [path]
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    return [found for key, part in inner for found in strings(part, (*path, key))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of a value with another one at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


#: Parameters that are one of a few words, not any text.
WORDS = ("state", "migration_type")


def test_a_reference_may_stand_wherever_a_text_decides_not_what_is_touched():
    wrong = []
    for name, kind in TYPES.items():
        for example in kind.SCHEMA.get("examples", ()):
            for path in strings(example):
                secret = put(example, path, ENV)
                one, other = (list(kind.touches(put(example, path, text))) for text in ("a", "b"))
                found = ParameterCheck(TYPES)(name, secret)
                decides = [m.path for m in found if "so it cannot be a secret" in m.text]
                if decides != [path] * (one != other) or (
                    len(found) > len(decides) and path[-1] not in WORDS
                ):
                    wrong.append((name, path, found))
                assert isinstance(kind.describe(labelled(secret)), str)
    assert not wrong


def test_the_instance_of_a_migration_cannot_be_a_secret():
    uuid = "6a1f0001-0000-4000-8000-000000000001"
    given = {"resource_id": ENV, "migration_type": "live", "source_node": "c1"}
    (mistake,) = ParameterCheck(TYPES)("migrate", given)
    assert "cannot be a secret" in mistake.text
    assert not ParameterCheck(TYPES)("migrate", {**given, "resource_id": uuid})


@pytest.mark.parametrize(
    ("schema", "accepts"),
    [
        ({"type": "string", "pattern": "^x", "minLength": 30}, True),
        ({"type": ["null", "string"]}, True),
        ({"type": "integer"}, False),
        ({"enum": ["a", "b"]}, False),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, True),
        ({"$ref": "#/$defs/text", "$defs": {"text": {"type": "string"}}}, True),
        ({"$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}}, True),
        ({"$ref": "#t", "$defs": {"text": {"type": "string", "$anchor": "t"}}}, True),
        ({"not": {"type": "integer"}, "allOf": [{"type": "string"}]}, True),
    ],
)
def test_a_schema_that_accepts_a_text_accepts_a_reference(schema, accepts):
    defined = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    whole = {"properties": {"type": schema}, **defined}
    check = checking.compiled(accepting(whole))
    assert (check({"type": ENV}) == []) is accepts
    assert check({"type": {"secret": "swordfish"}}) != []


TEXTS = {"type": ["string", "array"], "items": {"type": "string", "minLength": 2}}


@pytest.mark.parametrize(
    ("pointer", "texts"),
    [
        ("#/properties/a", TEXTS),
        ("#/properties/a/items", TEXTS),
        ("#/properties/a/prefixItems/1", {"type": "string", "prefixItems": [{}, TEXTS]}),
        ("#/properties/a/allOf/0", {"type": "string", "allOf": [TEXTS]}),
        ("#/properties/a/not/items", {"type": "string", "not": TEXTS}),
        ("#/properties/a/if/items", {"type": "string", "if": TEXTS}),
        ("#/properties/a/else/items", {"type": "string", "else": TEXTS}),
        (
            "#/properties/a/properties/x~1%7E0y/items",
            {"type": "string", "properties": {"x/~y": TEXTS}},
        ),
        ("#/properties/a/items/items", {**TEXTS, "items": TEXTS}),
        ("#/properties/a/$defs/b/items", {**TEXTS, "$defs": {"b": TEXTS}}),
        ("#/properties/a/x/items", {"type": "string", "x": TEXTS}),
    ],
)
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_pointer_through_a_schema_that_accepts_a_reference_leads_where_it_led(
    keyword, pointer, texts
):
    schema = {"properties": {"a": texts, "o": {keyword: pointer}}}
    check = checking.compiled(accepting(schema))
    assert [check({"o": value}) != [] for value in ("ab", "a", 5)] == [
        checking.compiled(schema)({"o": value}) != [] for value in ("ab", "a", 5)
    ]
    # What is in `not`, `if`, or under a name that is no keyword, accepts no reference.
    if not {"not", "if", "x"} & texts.keys():
        assert check({"o": ENV}) == []


def test_a_pointer_begins_at_the_schema_with_an_id():
    inner = {"$id": "https://a/b", "type": ["string", "array"], "items": {"type": "string"}}
    inner["prefixItems"] = [{"$ref": "#/items"}]
    check = checking.compiled(accepting({"properties": {"a": inner}}))
    assert check({"a": [ENV, "x"]}) == []
    assert check({"a": [5]}) != []


def test_no_pointer_begins_at_the_fields_where_one_is_named_as_the_keyword():
    schema = {"properties": {"$id": TEXTS, "o": {"$ref": "#/properties/$id/items"}}}
    assert checking.compiled(accepting(schema))({"$id": [ENV], "o": ENV}) == []


def test_a_mistake_says_what_is_accepted_and_does_not_repeat_a_value():
    def said(parameters):
        return [str(m) for m in ParameterCheck(TYPES)("shell", {"command": "x", **parameters})]

    (mistake,) = said({"env": {"PW": {"secret": "swordfish"}}})
    assert mistake.startswith("env.PW.secret: ")
    assert mistake.endswith(": env NAME, or file /PATH")
    assert "swordfish" not in mistake
    assert said({"env": "swordfish"}) == ["env: its hidden value is not a mapping"]
    assert said({"env": {"PW": ["swordfish"]}}) == ["env.PW: its hidden value is not a text"]
    assert said({"cwd": 5}) == ["cwd: 5 is not a text"]
