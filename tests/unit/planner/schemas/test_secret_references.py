# SPDX-License-Identifier: Apache-2.0
"""References to secrets in parameters: where they are accepted, and what is hidden."""

from __future__ import annotations

from typing import Any

import pytest

from planner.making import registry
from planner.making.planning import ParameterCheck
from planner.schemas import checking
from planner.schemas.checking import in_place
from planner.schemas.hidden_values import accepting, labelled, reference

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
        ({"not": {"type": "integer"}, "allOf": [{"type": "string"}]}, True),
    ],
)
def test_a_schema_that_accepts_a_text_accepts_a_reference(schema, accepts):
    whole = {"properties": {"type": schema}, "$defs": schema.get("$defs", {})}
    check = checking.compiled(accepting(in_place(whole)))
    assert (check({"type": ENV}) == []) is accepts
    assert check({"type": {"secret": "swordfish"}}) != []


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
