# SPDX-License-Identifier: Apache-2.0
"""What the workload stabilization planner does with actions if no option is set."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import InvalidInput
from planner.plan.model import ActionPlan
from planner.planners.workload_stabilization import WorkloadStabilizationPlanner
from planner.testing import action_type, plan

#: The first six as in Watcher 17; Watcher gives the others none, so that they go last.
WEIGHTS = {
    "nop": 5,
    "change_nova_service_state": 4,
    "sleep": 3,
    "migrate": 2,
    "resize": 1,
    "turn_host_to_acpi_s3_state": 0,
    "change_node_power_state": 0,
    "delete": 0,
    "shelve": 0,
    "stop": 0,
    "volume_migrate": 0,
}


def planned(*actions: dict[str, Any], **fields: Any) -> ActionPlan:
    """Plan actions of types that touch nothing and take any parameters."""
    types = map(action_type, {str(action["action_type"]) for action in actions})
    document = {"actions": list(actions), **fields}
    return plan(WorkloadStabilizationPlanner, document, *types)


@pytest.mark.parametrize(("name", "weight"), WEIGHTS.items())
def test_a_weight_is_the_number_that_it_is_in_watcher(name: str, weight: int) -> None:
    made = planned({"action_type": name, "input_parameters": {"source_node": "c1"}})
    assert made.actions[0].reason == f"weight {weight}"
    assert made.warnings == ()


def test_a_type_without_a_weight_goes_last_with_a_warning() -> None:
    made = planned({"action_type": "own"}, {"action_type": "stop"}, {"action_type": "resize"})
    assert [action.action_type for action in made.actions] == ["resize", "own", "stop"]
    (warning,) = made.warnings
    assert "'own' has no weight: 0" in warning


@pytest.mark.parametrize("away", [False, True])
def test_the_host_of_a_move_is_always_needed_that_of_a_resize_where_a_host_goes_away(
    away: bool,
) -> None:
    actions = [
        {"action_type": "migrate", "resource_id": "i1"},
        {"action_type": "resize", "resource_id": "i2"},
        *([{"action_type": "turn_host_to_acpi_s3_state", "resource_id": "c1"}] if away else []),
    ]
    with pytest.raises(InvalidInput) as refused:
        planned(*actions)
    places = [str(mistake).partition(":")[0] for mistake in refused.value.mistakes]
    assert places == ["actions[0]", "actions[1]"][: 1 + away]
    facts = {"instances": {"i1": {"host": "c1"}, "i2": {"host": "c1"}}}
    assert len(planned(*actions, facts=facts).actions) == 2 + away
