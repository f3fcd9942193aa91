# SPDX-License-Identifier: Apache-2.0
"""Parameters for the checks: the examples of a schema, and variants of them that do not fit."""

# Tests are assertions.
# ruff: noqa: S101

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any

from applier.contracts import ActionPlugin

#: Values that a parameter may have in a document that was not validated.
ODDITIES: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    math.nan,
    "",
    " ",
    "a\n\x1b[2Jb",
    [],
    [1],
    {},
    {"a": 1},
)


def examples_of(action: type[ActionPlugin]) -> list[dict[str, Any]]:
    """Return copies of the examples of a schema; raise AssertionError if it has none."""
    examples = copy.deepcopy(list(action.SCHEMA.get("examples", ())))
    assert examples, f"the schema of {action.TYPE} has no examples to work on"
    return examples


def odd_parameters(
    action: type[ActionPlugin], example: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield an example without each of its parameters, and with each odd value for each."""
    for key in action.SCHEMA.get("properties", {}):
        yield {k: v for k, v in example.items() if k != key}
        for odd in ODDITIES:
            yield {**example, key: odd}
