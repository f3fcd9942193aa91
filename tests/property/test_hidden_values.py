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

from planner import schema_errors
from planner.errors import Mistake
from planner.write_only import hidden

NAMES = ("a", "b", "ab")
REFERENCES = (
    *({"$ref": ref} for ref in ("root", "root#one", "root#/$defs/two", "two")),
    {"$ref": "root#/$defs/two/$defs/inner"},
    *({"$dynamicRef": ref} for ref in ("#three", "two#three")),
)
#: More references than this lead each other nowhere: values are less deep, schemas have fewer.
MOST = 40
leaves = st.sampled_from(
    [{}, True, {"writeOnly": True}, {"type": "string"}, {"type": "object"}, {"required": ["a"]}]
) | st.sampled_from(REFERENCES)


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


@st.composite
def whole_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """A schema with the definitions that REFERENCES lead to."""
    one, two, three, inner = (draw(schemas) for _ in range(4))
    defined = {
        "one": {"$anchor": "one", "allOf": [one]},
        "two": {
            "$id": "two",
            "allOf": [two],
            "$defs": {"inner": inner, "three": {"$dynamicAnchor": "three", "anyOf": [inner]}},
        },
        "three": {"$dynamicAnchor": "three", "allOf": [three]},
    }
    return {"$id": "https://schemas/root", "$defs": defined, "allOf": [draw(schemas)]}


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


class Endless(Exception):
    """References lead to themselves."""


def bounded(keyword: str) -> Any:
    """Return the check of a keyword that raises Endless after MOST references in each other."""
    check, entered = Draft202012Validator.VALIDATORS[keyword], [0]

    def checked(*given: Any) -> Iterator[ValidationError]:
        entered[0] += 1
        if entered[0] > MOST:
            raise Endless
        try:
            yield from check(*given)
        finally:
            entered[0] -= 1

    return checked


def marked(schema: dict[str, Any], value: Any) -> tuple[set[str], list[ValidationError]] | None:
    """Return the texts that jsonschema finds to be marked, without names of fields, and its errors.

    None if jsonschema never ends.
    """
    found: set[str] = set()

    def write_only(_: Any, is_set: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
        if is_set:
            found.update(text for text in texts(instance) if text.startswith("text-"))
        return iter(())

    references = {keyword: bounded(keyword) for keyword in ("$ref", "$dynamicRef")}
    checker = validators.extend(Draft202012Validator, {"writeOnly": write_only, **references})
    try:
        return found, list(checker(schema).iter_errors(value))
    except Endless:
        return None


@given(whole_schemas(), shapes.map(numbered))
def test_what_is_marked_is_never_shown(schema: dict[str, Any], value: Any) -> None:
    reached = marked(schema, value)
    if reached is None:
        return
    shown = json.dumps(hidden(schema, value))
    assert [text for text in reached[0] if text in shown] == []
    told: list[Mistake] = schema_errors.find(schema, value) if reached[1] else []
    repeated = [(text, m) for text in reached[0] for m in told if text in str(m)]
    assert repeated == []
