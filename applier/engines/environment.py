# SPDX-License-Identifier: Apache-2.0
"""What the actions of a run work with: plugins, their options, a cloud and machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from applier.contracts import ActionContext, ActionPlugin, Cloud, Machines
from applier.errors import UnknownActionTypes
from applier.scheduling.type_policy import TypePolicy
from planner.model import JOIN, Action, ActionPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionEnvironment:
    """The surroundings of actions; every mapping goes by action type.

    ``options`` are those that plugins declare, ``policies`` what holds for all actions of a type.
    ``cloud`` opens the cloud; without ``machines`` each action makes connections of its own.
    ``pace`` is how many seconds of a pause or a sleep pass in a second, as in a simulated cloud.
    """

    plugins: Mapping[str, type[ActionPlugin]]
    cloud: Callable[[], Cloud]
    machines: Machines | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    policies: Mapping[str, TypePolicy] = field(default_factory=dict)
    pace: float = 1.0

    def of_plan(self, plan: ActionPlan) -> ActionEnvironment:
        """Return the environment with plugins and options of the plan's action types, all loaded.

        Raises UnknownActionTypes when one of them is not installed here, ConfigurationError when
        one of their options cannot be used.
        """
        needed = {a.action_type for a in plan.actions} - {JOIN}
        known = set(self.plugins)
        if not needed <= known:
            raise UnknownActionTypes(plan.uuid, needed - known, known)
        found = replace(self, plugins={name: self.plugins[name] for name in needed})
        types = {found._options_type(a) for a in plan.actions if a.action_type != JOIN}
        return replace(found, options={name: self.options.get(name, {}) for name in types})

    def _options_type(self, action: Action) -> str:
        return self.plugins[action.action_type].options_type(action.input_parameters)

    def context(self, action: Action, output: Callable[[str], None]) -> ActionContext:
        """Return what the plugin of one action is made with; ``output`` takes what it prints."""
        return ActionContext(
            cloud=self.cloud,
            output=output,
            options=self.options.get(self._options_type(action), {}),
            name=action.label,
            machines=self.machines,
        )

    def close(self) -> None:
        """Close the machines."""
        if self.machines is not None:
            self.machines.close()
