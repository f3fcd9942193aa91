# SPDX-License-Identifier: Apache-2.0
"""What Watcher's own planners gave for the same input, edge by edge.

Cases that show a defect of Watcher are named here, and planned the better way; all others have to
agree.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner import ActionPlan, PlannerError, make_plan
from planner.errors import InvalidInput

FOLDER = Path(__file__).parents[2] / "cases" / "watcher"
NAMES = sorted(file.stem for file in FOLDER.glob("*.json"))

PARALLELIZATION_BELOW_ONE = "weight-17"
NO_WEIGHT = "weight-13"
NO_SOURCE_NODE = "workload_stabilization-18"
BETTER = {PARALLELIZATION_BELOW_ONE, NO_WEIGHT, NO_SOURCE_NODE}


def case(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def planned(found: dict[str, Any]) -> ActionPlan:
    """Plan a case; what Watcher asked Nova for is given as facts."""
    actions = [{**a, "name": f"#{i}"} for i, a in enumerate(found["solution"]["actions"])]
    lookups = found.get("lookups") or {}
    document = {
        "actions": actions,
        "facts": {"instances": {instance: {"host": host} for instance, host in lookups.items()}},
    }
    return make_plan(document, found["planner"], found["config"], check_types=False)


def parents(plan: ActionPlan) -> list[list[int]]:
    """Return each action's parents, both by their positions in the input."""
    position = {a.uuid: int(str(a.name).removeprefix("#")) for a in plan.actions}
    found = {position[a.uuid]: [position[u] for u in a.parents] for a in plan.actions}
    return [found[i] for i in sorted(found)]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BETTER])
def test_the_parents_are_what_watcher_gives(name: str) -> None:
    found = case(name)
    if "expected_error" in found:
        with pytest.raises(PlannerError):
            planned(found)
        return
    plan = planned(found)
    assert parents(plan) == found["expected"]["parents"], found["title"]
    assert plan.state == found["expected"]["plan_state"]


def test_a_parallelization_below_one_is_refused_where_watcher_takes_it_for_one() -> None:
    with pytest.raises(InvalidInput, match=r"migrate: 0 is not .*; resize: -4 is not"):
        planned(case(PARALLELIZATION_BELOW_ONE))


def test_a_type_without_a_weight_is_planned_where_watcher_fails() -> None:
    found = case(NO_WEIGHT)
    assert found["expected_error"] == "KeyError: 'nop'"
    # nop has its weight from the defaults, over which the options are merged.
    assert parents(planned(found)) == [[1], []]
    strange = [{**a, "action_type": "strange"} for a in found["solution"]["actions"][1:]]
    solution = {"actions": [*found["solution"]["actions"][:1], *strange]}
    plan = planned({**found, "solution": solution})
    assert parents(plan) == [[], [0]]
    assert any("'strange' has no weight: 0" in warning for warning in plan.warnings)


def test_a_migrate_without_source_node_is_refused_by_that_name_where_watcher_fails() -> None:
    with pytest.raises(InvalidInput, match="source_node is missing"):
        planned(case(NO_SOURCE_NODE))
