"""The fast yes never says yes to what the validator refuses."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import registry
from planner.accepting import quick
from planner.planners.solution_schema import SCHEMA

KINDS = ("object", "array", "string", "integer", "number", "boolean", "null")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(-3, 3)
    | st.sampled_from(["", "a", "b", "ab", "live"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """Some schema of keywords that the fast yes knows, and a few that it does not."""
    inner = schemas(depth=depth - 1) if depth else st.just({})
    words: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(KINDS) | st.lists(st.sampled_from(KINDS), min_size=1, unique=True),
        "enum": st.lists(st.sampled_from(["a", "live", None, 1, True]), min_size=1, unique=True),
        "required": st.lists(st.sampled_from("abc"), unique=True),
        "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
        "additionalProperties": st.booleans() | inner,
        "items": inner,
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "pattern": st.sampled_from(["^a", "b$", "^$"]),
        "minimum": st.integers(-1, 1),
        "maximum": st.integers(-1, 1),
        "minItems": st.integers(0, 2),
        "description": st.just("says nothing"),
    }
    chosen = draw(st.lists(st.sampled_from(list(words)), max_size=4, unique=True))
    return {word: draw(words[word]) for word in chosen}


@given(schemas(), VALUES)
def test_what_it_accepts_fits(schema: dict[str, Any], value: object) -> None:
    if quick(schema)(value):
        assert jsonschema.Draft202012Validator(schema).is_valid(value)


def test_it_accepts_a_usual_document() -> None:
    action = {
        "name": "move",
        "action_type": "migrate",
        "resource_id": "i1",
        "input_parameters": {"source_node": "c1"},
        "touches": ["instance:i1"],
        "estimate_s": 1.5,
        "timeout_s": 60,
        "retries": 2,
    }
    assert quick(SCHEMA)({"kind": "solution", "actions": [action], "limits": {"node:*": 1}})


@pytest.mark.parametrize("name", registry.names(registry.ACTIONS))
def test_it_accepts_the_examples_of_every_action_type(name: str) -> None:
    schema = registry.ActionTypes()[name].SCHEMA
    fits = quick(schema)
    assert all(fits(example) for example in schema["examples"])


def test_a_schema_that_refers_to_its_parts_is_left_to_the_validator() -> None:
    schema = {"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}}
    assert not quick(schema)({"x": "a"})
