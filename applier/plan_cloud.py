# SPDX-License-Identifier: Apache-2.0
"""The cloud of a plan: its name, whether actions use it, and the refusal to use another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from applier.contracts import ActionPlugin
from applier.contracts.clouds import Cloud
from applier.errors import OtherCloud
from applier.store import PlanSummary
from planner.errors import PlannerError
from planner.model import JOIN, Action, ActionPlan

#: The plugin that is configured by default, and the name of its cloud.
SIMULATED = "simulated"


def name_of(plan: ActionPlan | PlanSummary) -> str:
    """Return the name of a plan's cloud; plans of older releases were made for the simulated one.

    >>> name_of(ActionPlan(uuid="u", planner="weight", actions=()))
    'simulated'
    """
    return plan.cloud or SIMULATED


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
    """Return whether an action uses the cloud; of a type that is not installed, nobody knows."""
    if action.action_type == JOIN:
        return False
    try:
        return plugins[action.action_type].uses_cloud(action.input_parameters)
    except (KeyError, PlannerError):
        return True
