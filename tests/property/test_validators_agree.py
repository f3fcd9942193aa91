# SPDX-License-Identifier: Apache-2.0
"""The compiled validator and jsonschema agree: what one refuses the other one explains."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import make_plan
from planner.making import registry
from planner.making.saved import SCHEMA as SAVED
from planner.planners.solution_schema import SCHEMA as SOLUTION
from planner.schemas import checking, schema_errors

MOVE = {"migration_type": "live", "source_node": "c1", "destination_node": None}
DOCUMENT = {
    "name": "two",
    "limits": {"node:*": 2},
    "facts": {"instances": {"6a1f": {"host": "c1"}}, "flavors": {}},
    "actions": [
        {"action_type": "migrate", "resource_id": "6a1f", "input_parameters": MOVE, "retries": 1},
        {"action_type": "nop", "name": "n", "touches": ["node:c1"], "estimate_s": 1.5},
    ],
}
#: Schemas, each with values that fit.
KNOWN: dict[str, tuple[Mapping[str, Any], list[Any]]] = {
    "solution": (SOLUTION, [DOCUMENT]),
    "saved": (SAVED, [make_plan(DOCUMENT, check_types=False).to_dict()]),
    **{
        name: (kind.SCHEMA, list(kind.SCHEMA["examples"]))
        for name, kind in registry.ActionTypes().items()
        if kind.SCHEMA.get("examples")
    },
}

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from(["node:c1", "PENDING", "a\n", "0644", "6a1f0001-0000-4000-8000-000000000001"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """A value with a part of it replaced, taken away or added, some times over."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(0, 2))):
        inside = value
        while True:
            keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
            key = draw(st.sampled_from(keys)) if keys else None
            if key is None or not isinstance(inside[key], dict | list) or draw(st.booleans()):
                break
            inside = inside[key]
        how = draw(st.sampled_from(["replace", "remove", "add"]))
        if how == "replace" and key is not None:
            inside[key] = draw(values)
        elif how == "remove" and key is not None:
            del inside[key]
        elif isinstance(inside, dict):
            inside[draw(st.text(max_size=3))] = draw(values)
        else:
            inside.append(draw(values))
    return value


@settings(max_examples=examples(20 * len(KNOWN)))
@given(name=st.sampled_from(sorted(KNOWN)), data=st.data())
def test_what_is_refused_is_explained_and_nothing_else_is(name: str, data: st.DataObject) -> None:
    schema, examples = KNOWN[name]
    value = data.draw(changed(data.draw(st.sampled_from(examples))))
    # What is accepted is not shown to jsonschema: here it is.
    assert checking.compiled(schema)(value) == schema_errors.find(schema, value)


def test_the_schemas_of_the_product_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them falls back to jsonschema, which would be slow."""
    monkeypatch.setattr(schema_errors, "find", None)
    for name, (schema, valid) in KNOWN.items():
        check = checking.compiled(schema)
        assert not any(check(example) for example in valid), name
