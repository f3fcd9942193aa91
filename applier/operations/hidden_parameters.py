# SPDX-License-Identifier: Apache-2.0
"""Plans and actions as they are shown: without parameters that are secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from applier.contracts import REVERT
from planner.errors import PlannerError, UnknownPlugin
from planner.making.registry import ActionTypes
from planner.plan.model import Action, ActionPlan
from planner.schemas import hidden_values


def without(plan: ActionPlan, types: ActionTypes) -> ActionPlan:
    """Return a plan whose hidden parameters are replaced.

    ``types`` are the installed action types. Parameters of any other type are not hidden, all those
    of a type that cannot be loaded are.
    """
    return replace(plan, actions=tuple(action_without(action, types) for action in plan.actions))


def action_without(action: Action, types: ActionTypes) -> Action:
    """Return an action whose hidden parameters are replaced."""
    if not action.input_parameters:
        return action
    shown = _shown(action.action_type, action.input_parameters, types)
    return action if shown == action.input_parameters else replace(action, input_parameters=shown)


def _shown(name: str, parameters: Any, types: ActionTypes) -> Any:
    if name == REVERT and isinstance(parameters, Mapping):
        inner = parameters.get("parameters")
        return {
            **parameters,
            "parameters": _shown(str(parameters.get("action_type")), inner, types),
        }
    try:
        schema = types[name].SCHEMA
    except UnknownPlugin:
        return parameters
    except PlannerError:
        # It is not known what the schema of a broken plugin marks.
        return hidden_values.masked(parameters)
    return hidden_values.hidden(schema, parameters)
