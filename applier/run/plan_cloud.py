# SPDX-License-Identifier: Apache-2.0
"""What all actions of a plan say together: the cloud that it needs, and its overview.

Raises OtherCloud if another cloud is configured than that of the plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from applier.contracts import ActionPlugin
from applier.contracts.clouds import Cloud
from applier.errors import OtherCloud
from applier.store import PlanSummary
from applier.store.plans import Overview, Wave
from applier.wording import one_line, resources, some
from planner.errors import PlannerError
from planner.making.registry import ActionTypes
from planner.plan.guarantees import guarantees
from planner.plan.model import JOIN, Action, ActionPlan

#: The plugin that is configured by default, and the name of its cloud.
SIMULATED = "simulated"

#: Of more waves than this, an overview has half as many, and the last ones.
MOST_WAVES, LAST_WAVES = 60, 5
#: The kinds of resources that an overview counts, as in tokens.
KINDS = ("node", "instance", "volume")

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
    return cloud_with(plan, [] if name_of(plan) != SIMULATED else _outside(plan))


def cloud_with(plan: ActionPlan, outside: Sequence[str]) -> str:
    """Return the text of :func:`cloud_of` of a plan with types that work outside the cloud."""
    if name_of(plan) != SIMULATED:
        return shown_name(plan)
    but = f", except by {one_line(', '.join(outside))}" if outside else ""
    return f"{SIMULATED}: nothing real is touched{but}"


def _outside(plan: ActionPlan) -> list[str]:
    return sorted({name for action in plan.actions for name in _real(*_done(action))})


def overview_and_waves(plan: ActionPlan) -> tuple[Overview, Mapping[str, int]]:
    """Return the overview of a plan, and the numbers of the waves of its actions by uuid."""
    from planner.plan import graph  # the module takes long to import, and few plans are long

    waves = graph.waves(plan.actions)
    numbers = {a.uuid: number for number, wave in enumerate(waves, 1) for a in wave}
    return overview(plan, waves), numbers


def overview(plan: ActionPlan, waves: Sequence[Sequence[Action]]) -> Overview:
    """Return the overview of a plan from its actions and its waves."""
    last = max(len(waves) - LAST_WAVES, 0)
    listed = [
        _wave(number, wave)
        for number, wave in enumerate(waves, 1)
        if len(waves) <= MOST_WAVES or number <= MOST_WAVES // 2 or number > last
    ]
    return Overview(
        actions=sum(map(len, waves)),
        waves=len(waves),
        widest=max(map(len, waves), default=0),
        alone_s=_alone_s(waves),
        touched={kind: len(resources(plan.actions, kind)) for kind in KINDS},
        guarantees=guarantees(plan) if plan.places else (),
        outside=_outside(plan),
        shown=listed,
    )


def _wave(number: int, wave: Sequence[Action]) -> Wave:
    longest_s = max((a.estimate_s for a in wave if a.estimate_s is not None), default=None)
    types = Counter(action.action_type for action in wave)
    return Wave(number, types, some(resources(wave, "node"), 3), longest_s)


def _alone_s(waves: Iterable[Sequence[Action]]) -> float | None:
    """Return the sum of all estimates; None if an action has none."""
    estimates = [action.estimate_s for wave in waves for action in wave]
    known = [seconds for seconds in estimates if seconds is not None]
    return sum(known) if len(known) == len(estimates) else None


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
