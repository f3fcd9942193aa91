# SPDX-License-Identifier: Apache-2.0
"""What the weight planner does with actions if no option is set: as in Watcher 17."""

from __future__ import annotations

from typing import Any

import pytest

from planner.making import registry
from planner.plan.model import Action
from planner.planners import workload_stabilization
from planner.planners.weight import PARALLELIZATION, WEIGHTS, WeightPlanner
from planner.testing import action_type, plan

#: From the heaviest to the lightest, with how many actions of the type are in one set.
TYPES = {
    "nop": 1,
    "volume_migrate": 2,
    "change_nova_service_state": 1,
    "sleep": 1,
    "shelve": 2,
    "stop": 2,
    "delete": 2,
    "migrate": 2,
    "resize": 2,
    "turn_host_to_acpi_s3_state": 2,
    "change_node_power_state": 2,
}


def planned(*types: str) -> tuple[Action, ...]:
    """Plan actions of types that touch nothing and take any parameters."""
    actions: list[dict[str, Any]] = [{"action_type": name} for name in types]
    return plan(WeightPlanner, {"actions": actions}, *map(action_type, set(types))).actions


def test_no_type_of_the_product_is_warned_of() -> None:
    own = set(registry.names(registry.ACTIONS)) - {"join"}
    assert own <= WEIGHTS.keys()
    assert own <= PARALLELIZATION.keys()
    assert own <= workload_stabilization.WEIGHTS.keys()


def test_each_type_has_the_weight_that_it_has_in_watcher() -> None:
    assert [action.action_type for action in planned(*reversed(TYPES))] == list(TYPES)


#: What a site's own weights are merged over, so that the numbers count, not only their order.
NUMBERS = (70, 60, 50, 40, 37, 35, 33, 30, 20, 10, 9)


@pytest.mark.parametrize(("name", "weight"), list(zip(TYPES, NUMBERS, strict=True)))
def test_a_weight_is_the_number_that_it_is_in_watcher(name: str, weight: int) -> None:
    (action,) = planned(name)
    assert action.reason == f"weight {weight}"


@pytest.mark.parametrize(("name", "width"), TYPES.items())
def test_a_set_has_as_many_actions_of_a_type_as_in_watcher(name: str, width: int) -> None:
    actions = planned(*[name] * 5)
    first = [action for action in actions if not action.parents]
    assert len(first) == width
