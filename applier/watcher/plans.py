# SPDX-License-Identifier: Apache-2.0
"""Plans solutions of strategies, and converts plans to rows of Watcher's tables and back.

Watcher stores only one kind of link, ``parents``, and neither joins nor limits of a plan. When a
plan is read, needs and tokens are computed from the touches of its actions, as when it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from oslo_config import cfg

from applier.contracts import ActionPlugin
from applier.store import Attempt
from applier.watcher.engine_options import SECTION as ENGINE
from applier.watcher.engine_options import TypeTouches
from applier.watcher.states import state_of
from planner.contract import Surroundings
from planner.errors import InvalidInput, Mistake
from planner.making.configuration_files import place_of
from planner.making.options import IN_WATCHER
from planner.making.planning import make_plan
from planner.plan.graph import in_topological_order, validate
from planner.plan.model import JOIN, Action, ActionPlan, ProposedAction, Solution
from planner.plan.states import ActionState, Outcome, PlanState
from planner.planners.draft import Draft
from planner.planners.solution import about

#: The planner of plans that were read from Watcher's database.
PLANNER = "watcher"
#: The name of the cloud of these plans; Watcher's own configuration defines it.
CLOUD = "the one of OpenStack Watcher"
_OUTCOMES = {ActionState.SUCCEEDED: Outcome.CHANGED, ActionState.FAILED: Outcome.FAILED}


@dataclass(frozen=True, kw_only=True)
class _Uuids(Surroundings):
    """Surroundings for a draft whose actions get the ``known`` uuids, in the order of drafting."""

    known: Sequence[str]

    def new_ids(self, number: int) -> list[str]:
        return list(self.known[:number])


def plan_of(
    plan_row: Any,
    action_rows: Sequence[Any],
    types: Mapping[str, type[ActionPlugin]],
    limits: Mapping[str, int],
    begun: Mapping[str, Sequence[Attempt]],
) -> ActionPlan:
    """Return the plan of a row of ``action_plans`` and its rows of ``actions``, ordered by ``id``.

    ``begun`` holds the attempts of each action that has any, oldest first, by uuid. The name of
    each action is its uuid. Raises InvalidPlan if parents are unknown or form a cycle.
    """
    rows = _in_order(action_rows)
    proposed = [_proposed(row, types.get(row.action_type)) for row in rows]
    uuids = [row.uuid for row in rows]
    surroundings = _Uuids(
        now=lambda: aware(plan_row.created_at) or datetime.now(UTC),
        new_id=lambda: str(plan_row.uuid),
        action_type=types.__getitem__,
        check=lambda _name, _parameters: (),
        known=uuids,
    )
    draft = Draft(PLANNER, Solution(actions=proposed), surroundings)
    position = {uuid: i for i, uuid in enumerate(uuids)}
    shared: dict[tuple[str, ...], tuple[int, ...]] = {}
    for row, one in zip(rows, proposed, strict=True):
        key = _parents(row)
        parents = shared.setdefault(key, tuple(position[uuid] for uuid in key))
        draft.add(one, parents, "as in Watcher's plan")
    plan = draft.plan(limits=limits)
    by_uuid = {row.uuid: row for row in rows}
    return replace(
        plan,
        cloud=CLOUD,
        state=PlanState(plan_row.state),
        updated_at=aware(plan_row.updated_at),
        status_message=plan_row.status_message,
        actions=tuple(
            with_state(action, by_uuid[action.uuid], begun.get(action.uuid, ()))
            for action in plan.actions
        ),
    )


def with_state(action: Action, row: Any, attempts: Sequence[Attempt]) -> Action:
    """Return an action with the state, times and outcome from its row and its attempts."""
    last = attempts[-1] if attempts else None
    state = state_of(row.state, row.status_message, last.state if last else None)
    ran = last is not None and state is not ActionState.PENDING
    return replace(
        action,
        state=state,
        outcome=(last.outcome if last and ran else None) or _OUTCOMES.get(state),
        status_message=row.status_message,
        started_at=last.started_at if last and ran else None,
        ended_at=last.ended_at if last and ran else None,
        attempts=len(attempts),
    )


def _in_order(rows: Sequence[Any]) -> list[Any]:
    """Return the rows so that parents come before their children; raises InvalidPlan."""
    links = [
        Action(uuid=row.uuid, name=row.uuid, action_type=row.action_type, parents=_parents(row))
        for row in rows
    ]
    validate(links)
    by_uuid = {row.uuid: row for row in rows}
    return [by_uuid[action.uuid] for action in in_topological_order(links)]


def _parents(row: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.parents or ()))


def _proposed(row: Any, kind: type[ActionPlugin] | None) -> ProposedAction:
    parameters = row.input_parameters or {}
    known = about(row.action_type, kind, parameters)
    resource = parameters.get("resource_id")
    return ProposedAction(
        name=row.uuid,
        action_type=row.action_type,
        resource_id=resource if isinstance(resource, str) else None,
        input_parameters=parameters,
        description=known.description,
        touches=known.touches,
        estimate_s=known.estimate_s,
    )


def aware(moment: datetime | None) -> datetime | None:
    """Convert the value of a column, which is in UTC without a zone, to a moment with the zone."""
    return None if moment is None else moment.replace(tzinfo=UTC)


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
    document: dict[str, Any] = {"actions": [_in_document(action, table) for action in actions]}
    if planner == "workload_stabilization":
        resized = [a["input_parameters"] for a in actions if a["action_type"] == "resize"]
        hosts = {p["resource_id"]: {"host": host_of(p["resource_id"])} for p in resized}
        document["facts"] = {"instances": hosts}
    plan = make_plan(document, planner, conf=conf, check_types=False)
    _require_kept(plan.limits, conf)
    return plan


def _in_document(action: Mapping[str, Any], table: Mapping[str, TypeTouches]) -> dict[str, Any]:
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
