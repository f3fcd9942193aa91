# SPDX-License-Identifier: Apache-2.0
"""The environment of the actions of a run: plugins, options, cloud and machines; their output."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from applier.contracts import ActionContext, ActionPlugin
from applier.contracts.clouds import Cloud
from applier.errors import ActionFailed, UnknownActionTypes
from applier.scheduling.failures import TypePolicy
from planner.plan.model import JOIN, Action, ActionPlan

if TYPE_CHECKING:
    from applier.machines.open_machines import AttemptMachines, OpenMachines

#: The maximum size of an action's kept output, in bytes of UTF-8; the end is kept.
KEPT_BYTES = 64 * 1024


class ActionOutput:
    """Keeps the end of the output of an action. Several threads may use it at once.

    >>> output = ActionOutput(kept=8)
    >>> output.write("one, two, "); output.write("three")
    >>> output.text()
    'o, three'
    """

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._kept = kept
        self._bytes = bytearray()
        self._lock = threading.Lock()

    def write(self, text: str) -> None:
        """Append text; drop the oldest text if there is too much."""
        chunk = text[-self._kept :].encode(errors="replace")
        with self._lock:
            self._bytes += chunk
            if len(self._bytes) > 2 * self._kept:  # not at each write: it copies
                del self._bytes[: -self._kept]

    def text(self) -> str | None:
        """Return the kept text; None if nothing was printed."""
        with self._lock:
            kept = bytes(self._bytes[-self._kept :])
        return kept.decode(errors="ignore") or None


def _no_cloud() -> Cloud:
    raise ActionFailed("its type gets no cloud, because it does not declare USES_CLOUD")


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionEnvironment:
    """The environment in which actions run; all mappings are by action type.

    ``options`` are the values of the options that plugins declare. ``policies`` hold retries,
    time-outs and estimates. ``cloud`` returns the cloud. ``open_machines`` returns the machines of
    a run; it is called only for plans with actions that use some. ``pace`` is the number of
    simulated seconds per second in pauses and sleeps.
    """

    plugins: Mapping[str, type[ActionPlugin]]
    cloud: Callable[[], Cloud] = _no_cloud
    open_machines: Callable[[], OpenMachines] | None = None
    #: The machines of the plan, if it uses some; see :meth:`of_plan`.
    machines: OpenMachines | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    policies: Mapping[str, TypePolicy] = field(default_factory=dict)
    pace: float = 1.0
    #: The uuid of the plan, which names the jobs of its actions; see :meth:`of_plan`.
    plan: str = ""

    def of_plan(self, plan: ActionPlan) -> ActionEnvironment:
        """Load the plugins and options for a plan; return an environment with only these.

        The caller has to close it. Raises UnknownActionTypes if one of the plugins is not
        installed, ConfigurationError if one of their options, or a setting of the machines that
        they use, has an invalid value.
        """
        needed = {a.action_type for a in plan.actions} - {JOIN}
        known = set(self.plugins)
        if not needed <= known:
            raise UnknownActionTypes(plan.uuid, needed - known, known)
        found = replace(self, plan=plan.uuid, plugins={name: self.plugins[name] for name in needed})
        types = {found._options_type(a) for a in plan.actions if a.action_type != JOIN}
        options = {name: self.options.get(name, {}) for name in types}
        policies = {name: self.policies[name] for name in needed if name in self.policies}
        uses_machines = any(plugin.USES_MACHINES for plugin in found.plugins.values())
        machines = self.machines
        if self.open_machines is not None and uses_machines:
            machines = self.open_machines()
        return replace(found, options=options, policies=policies, machines=machines)

    def _options_type(self, action: Action) -> str:
        return self.plugins[action.action_type].options_type(action.input_parameters)

    def machines_of(self, action: Action, attempt: int) -> AttemptMachines | None:
        """Return the machines for one attempt of an action, whose commands can be found again.

        Returns None if the action uses none.
        """
        machines = self._used_by(action)
        if machines is None:
            return None
        return machines.of_attempt(self.plan, action.uuid, attempt)

    def _used_by(self, action: Action) -> OpenMachines | None:
        return self.machines if self.plugins[action.action_type].USES_MACHINES else None

    def context(
        self,
        action: Action,
        output: Callable[[str], None],
        machines: AttemptMachines | None = None,
    ) -> ActionContext:
        """Return the context for the plugin of one action; its output is passed to ``output``."""
        plugin = self.plugins[action.action_type]
        return ActionContext(
            cloud=self.cloud if plugin.uses_cloud(action.input_parameters) else _no_cloud,
            output=output,
            options=self.options.get(self._options_type(action), {}),
            name=action.label,
            machines=machines or self._used_by(action),
        )

    def close(self) -> None:
        """Close the machines."""
        if self.machines is not None:
            self.machines.close()
