# SPDX-License-Identifier: Apache-2.0
"""What jsonschema finds to be marked as ``writeOnly`` is never shown, by whatever keywords."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

from planner.errors import Mistake
from planner.schemas import schema_errors
from planner.schemas.write_only import hidden

NAMES = ("a", "b", "ab")
leaves = st.sampled_from(
    [{}, True, {"writeOnly": True}, {"type": "string"}, {"type": "object"}, {"required": ["a"]}]
)


def schemas_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Make schemas of some keywords with schemas inside."""
    named = st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=2)
    listed = st.lists(inner, min_size=1, max_size=2)
    one = ("additionalProperties", "unevaluatedProperties", "propertyNames", "items")
    one += ("unevaluatedItems", "contains", "not", "if", "then", "else")
    keywords: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(one, inner),
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), listed),
        **dict.fromkeys(("properties", "patternProperties", "dependentSchemas"), named),
        "writeOnly": st.just(True),
        "type": st.sampled_from(["string", "object", "array"]),
    }
    some = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=4, unique=True)
    return some.flatmap(lambda used: st.fixed_dictionaries({k: keywords[k] for k in used}))


schemas = st.recursive(leaves, schemas_of, max_leaves=8)
shapes = st.recursive(
    st.just("text"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)


def numbered(shape: Any) -> Any:
    """Return a value of a shape in which each text is another one."""
    numbers = iter(range(1000))

    def made(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: made(held) for key, held in part.items()}
        if isinstance(part, list):
            return [made(held) for held in part]
        return f"text-{next(numbers):03}"

    return made(shape)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else ():
        yield from texts(part)
    for part in value if isinstance(value, list) else ():
        yield from texts(part)


def marked(schema: Any, value: Any) -> tuple[set[str], list[ValidationError]]:
    """Return the texts that jsonschema finds to be marked, not names of fields, and its errors."""
    found: set[str] = set()

    def write_only(_: Any, is_set: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
        if is_set:
            found.update(text for text in texts(instance) if text.startswith("text-"))
        return iter(())

    checker = validators.extend(Draft202012Validator, {"writeOnly": write_only})
    return found, list(checker(schema).iter_errors(value))


@given(schemas, shapes.map(numbered))
def test_what_is_marked_is_never_shown(schema: Any, value: Any) -> None:
    reached, errors = marked(schema, value)
    shown = json.dumps(hidden(schema, value))
    assert [text for text in reached if text in shown] == []
    told: list[Mistake] = schema_errors.find(schema, value) if errors else []
    repeated = [(text, m) for text in reached for m in told if text in str(m)]
    assert repeated == []
