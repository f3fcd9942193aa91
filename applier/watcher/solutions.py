# SPDX-License-Identifier: Apache-2.0
"""Plans a solution of a strategy of Watcher, and converts the plan to rows of Watcher's tables.

These have one kind of link, the parents of an action, and neither joins nor limits of a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from applier.watcher.engine_options import SECTION as ENGINE
from applier.watcher.engine_options import TypeTouches
from planner.configuration_files import place_of
from planner.errors import InvalidInput, Mistake
from planner.model import JOIN, ActionPlan
from planner.options import IN_WATCHER
from planner.planning import make_plan
from planner.states import ActionState


def plan_solution(
    actions: Sequence[Mapping[str, Any]],
    planner: str,
    conf: cfg.ConfigOpts,
    host_of: Callable[[str], str],
) -> ActionPlan:
    """Plan the actions of a solution with the named planner, by the options of ``conf``.

    ``host_of`` returns the host of an instance. It is called for each instance to be resized if the
    planner is ``workload_stabilization``, which needs the hosts. Raises PlannerError, which lists
    every mistake; a limit of the plan that no engine would enforce is one.
    """
    table = conf[ENGINE].touches
    document: dict[str, Any] = {"actions": [_proposed(action, table) for action in actions]}
    if planner == "workload_stabilization":
        resized = [a["input_parameters"] for a in actions if a["action_type"] == "resize"]
        hosts = {p["resource_id"]: {"host": host_of(p["resource_id"])} for p in resized}
        document["facts"] = {"instances": hosts}
    plan = make_plan(document, planner, conf=conf, check_types=False)
    _require_kept(plan.limits, conf)
    return plan


def _proposed(action: Mapping[str, Any], table: Mapping[str, TypeTouches]) -> dict[str, Any]:
    """Return an action in the form of a document, with touches if its type is in ``table``."""
    name, parameters = action["action_type"], action.get("input_parameters") or {}
    proposed = {"action_type": name, "input_parameters": parameters}
    if name in table:
        found = table[name].of(parameters)
        proposed["touches"] = [f"{touch.effect} {touch.resource}" for touch in found]
    return proposed


def _require_kept(limits: Mapping[str, int], conf: cfg.ConfigOpts) -> None:
    """Raise InvalidInput with all limits of a plan that the configured engine does not enforce."""
    ours = conf.watcher_applier.workflow_engine == IN_WATCHER
    kept: Mapping[str, int] = conf[ENGINE].limits if ours else {}
    lost = []
    for token, number in limits.items():
        every = f"{token.partition(':')[0]}:*"
        if kept.get(token, kept.get(every, number + 1)) > number:
            lost.append(f"{token}={number}")
    if lost:
        text = (
            f"limits = {', '.join(lost)} is missing: Watcher cannot store the limits of this plan"
        )
        if not ours:
            text += f", and only workflow_engine = {IN_WATCHER} keeps those of this section"
        raise InvalidInput([Mistake(text, place=place_of(conf, ENGINE, "limits"))])


def action_rows(plan: ActionPlan) -> list[dict[str, Any]]:
    """Return a row for each action that is no join, in the order of the plan.

    The parents of a row are all predecessors of the action, also those that it needs. In place of a
    join, they contain all predecessors of the join.
    """
    joins = {a.uuid: a.before() for a in plan.actions if a.action_type == JOIN}
    flattened: dict[tuple[str, ...], list[str]] = {}

    def parents(uuids: tuple[str, ...]) -> list[str]:
        if uuids not in flattened:
            found: dict[str, None] = {}
            for uuid in uuids:
                found.update(dict.fromkeys(parents(joins[uuid]) if uuid in joins else [uuid]))
            flattened[uuids] = list(found)
        return flattened[uuids]

    return [
        {
            "uuid": action.uuid,
            "action_type": action.action_type,
            "input_parameters": dict(action.input_parameters),
            "state": str(ActionState.PENDING),
            "parents": parents(action.before()),
        }
        for action in plan.actions
        if action.action_type != JOIN
    ]
