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


def placed():
    return [
        (name, example, path)
        for name, kind in TYPES.items()
        for example in kind.SCHEMA.get("examples", ())
        for path in strings(example)
    ]


@pytest.mark.parametrize(("name", "example", "path"), placed())
def test_a_reference_may_stand_wherever_a_text_decides_not_what_is_touched(name, example, path):
    kind, secret = TYPES[name], put(example, path, ENV)
    touched = [list(kind.touches(put(example, path, text))) for text in ("one", "other")]
    found = [(m.path, m.text) for m in ParameterCheck(TYPES)(name, secret)]
    if touched[0] != touched[1]:
        assert found == [(path, "it decides what the action works on, so it cannot be a secret")]
    elif path[-1] not in WORDS:
        assert found == []
    assert isinstance(kind.describe(labelled(secret)), str)


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


def test_a_mistake_says_what_is_accepted_and_does_not_repeat_a_value():
    def said(parameters):
        return [str(m) for m in ParameterCheck(TYPES)("shell", {"command": "x", **parameters})]

    assert said({"env": {"PW": {"secret": "swordfish"}}}) == [
        "env.PW.secret: its hidden value is not a reference to a secret: env NAME, or file /PATH"
    ]
    assert said({"env": "swordfish"}) == ["env: its hidden value is not a mapping"]
    assert said({"env": {"PW": ["swordfish"]}}) == ["env.PW: its hidden value is not a text"]
    assert said({"cwd": 5}) == ["cwd: 5 is not a text"]
