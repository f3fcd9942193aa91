# SPDX-License-Identifier: Apache-2.0
"""Converts Watcher's rows of a plan and its actions to an action plan. Pure.

Watcher stores only one kind of link, ``parents``. Needs and tokens are computed from the touches of
the actions, as when our planners make a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from applier.contracts import ActionPlugin
from applier.store import Attempt
from applier.watcher.states import state_of
from planner.contract import Surroundings
from planner.graph import in_topological_order, validate
from planner.model import Action, ActionPlan, ProposedAction, Solution
from planner.planners.draft import Draft
from planner.planners.solution import about
from planner.states import ActionState, Outcome, PlanState

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
        """Return the first ``number`` of the known uuids."""
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
