# SPDX-License-Identifier: Apache-2.0
"""Says which cloud a plan works on, and whether anything real is touched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from applier.contracts import ActionPlugin
from applier.plan_cloud import SIMULATED, name_of
from applier.store import PlanSummary
from applier.wording import one_line
from planner.errors import PlannerError
from planner.model import JOIN, ActionPlan
from planner.registry import ActionTypes

_TYPES: Mapping[str, Any] = ActionTypes()


def shown_name(plan: ActionPlan | PlanSummary) -> str:
    """Return the name of a plan's cloud on one line."""
    return one_line(name_of(plan))


def cloud_of(plan: ActionPlan) -> str:
    """Return the cloud of a plan; of the simulated one, which action types do something real.

    >>> cloud_of(ActionPlan(uuid="u", planner="weight", actions=()))
    'simulated: nothing real is touched'
    """
    if name_of(plan) != SIMULATED:
        return shown_name(plan)
    real = sorted({name for action in plan.actions for name in _real(*_done(action))})
    but = f", except by {one_line(', '.join(real))}" if real else ""
    return f"{SIMULATED}: nothing real is touched{but}"


def _done(action: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the type and the parameters of an action, or of the action that it undoes."""
    kind, given = action.action_type, action.input_parameters
    if kind == "revert":
        return str(given.get("action_type")), given.get("parameters") or {}
    return kind, given


def _real(kind: str, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of a type that works outside the cloud, or of which that is not known."""
    if kind == JOIN:
        return
    try:
        plugin = _TYPES[kind]
    except PlannerError:
        yield kind
        return
    is_known = isinstance(plugin, type) and issubclass(plugin, ActionPlugin)
    if not is_known or plugin.works_outside(given):
        yield kind
