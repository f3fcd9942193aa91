# SPDX-License-Identifier: Apache-2.0
"""The option ``touches`` of the engine inside Watcher."""

from __future__ import annotations

import pytest

from applier.watcher.engine_options import TouchesTable
from planner.plan.model import Effect, Touch


def test_types_stand_on_lines_or_between_semicolons():
    table = TouchesTable()(
        "rack: instance:{resource_id}, leaves node:{from}\nother: node:{host}; third: volume:v1"
    )
    assert list(table) == ["rack", "other", "third"]
    assert table["rack"].of({"resource_id": "i1", "from": "c1"}) == (
        Touch("instance:i1"),
        Touch("node:c1", Effect.LEAVES),
    )
    assert TouchesTable()(TouchesTable()._formatter(table)) == table


def test_a_touch_whose_parameter_is_missing_is_left_out():
    table = TouchesTable()("rack: instance:{resource_id}, node:{host}")
    assert table["rack"].of({"resource_id": "i1", "host": None}) == (Touch("instance:i1"),)


def test_all_mistakes_are_named():
    with pytest.raises(ValueError, match="eats") as refusal:
        TouchesTable()("rack: eats node:{host}; nothing; two: node:a; two: node:b")
    text = str(refusal.value)
    assert "'eats node:{host}' is not a touch" in text
    assert "'nothing' is not TYPE" in text
    assert "two has two entries" in text
