# SPDX-License-Identifier: Apache-2.0
"""Determines the cloud that a plan needs, and raises OtherCloud if another one is configured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from applier.contracts import ActionPlugin
from applier.contracts.clouds import Cloud
from applier.errors import OtherCloud
from applier.store import PlanSummary
from applier.wording import one_line
from planner.errors import PlannerError
from planner.model import JOIN, Action, ActionPlan
from planner.registry import ActionTypes

#: The plugin that is configured by default, and the name of its cloud.
SIMULATED = "simulated"

_TYPES: Mapping[str, Any] = ActionTypes()


def name_of(plan: ActionPlan | PlanSummary) -> str:
    """Return the name of a plan's cloud; a plan that names none is for the simulated one.

    >>> name_of(ActionPlan(uuid="u", planner="weight", actions=()))
    'simulated'
    """
    return plan.cloud or SIMULATED


def shown_name(plan: ActionPlan | PlanSummary) -> str:
    """Return the name of a plan's cloud on one line."""
    return one_line(name_of(plan))


def cloud_of(plan: ActionPlan) -> str:
    """Return the name of a plan's cloud; for the simulated one, with the exceptions to simulation.

    These are the action types that work outside the cloud, or that are not installed.

    >>> cloud_of(ActionPlan(uuid="u", planner="weight", actions=()))
    'simulated: nothing real is touched'
    """
    if name_of(plan) != SIMULATED:
        return shown_name(plan)
    real = sorted({name for action in plan.actions for name in _real(*_done(action))})
    but = f", except by {one_line(', '.join(real))}" if real else ""
    return f"{SIMULATED}: nothing real is touched{but}"


def needed_by(plan: ActionPlan, plugins: Mapping[str, type[ActionPlugin]]) -> str | None:
    """Return the name of the cloud on which a plan must run; None if no action uses a cloud."""
    uses_cloud = any(_uses_cloud(action, plugins) for action in plan.actions)
    return name_of(plan) if uses_cloud else None


def require_own(
    plan: ActionPlan, plugins: Mapping[str, type[ActionPlugin]], cloud: Callable[[], Cloud]
) -> None:
    """Raise OtherCloud if ``cloud``, which is configured, is not the one that a plan needs.

    ``cloud`` is called only if the plan needs one; what it raises is passed on.
    """
    own = needed_by(plan, plugins)
    if own is not None and own != (configured := cloud().name):
        raise OtherCloud(plan.uuid, own, configured)


def _uses_cloud(action: Action, plugins: Mapping[str, type[ActionPlugin]]) -> bool:
    """Return whether an action uses the cloud; True for a type that is not installed."""
    if action.action_type == JOIN:
        return False
    try:
        return plugins[action.action_type].uses_cloud(action.input_parameters)
    except (KeyError, PlannerError):
        return True


def _done(action: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the type and the parameters of an action, or of the action that it undoes."""
    kind, given = action.action_type, action.input_parameters
    if kind == "revert":
        return str(given.get("action_type")), given.get("parameters") or {}
    return kind, given


def _real(kind: str, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of a type if it works outside the cloud, or is not an installed plugin."""
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
