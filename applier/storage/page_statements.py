# SPDX-License-Identifier: Apache-2.0
"""The statements that list plans and actions page by page.

Each is built when it is first needed: one for each combination of sort key, direction and filters.
The values of a request are bind parameters, never parts of a statement.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.columns import Moment
from applier.storage.compiled import Deferred, word
from applier.storage.tables import action_states, actions, plans
from applier.store.pages import ActionKey, PlanKey
from planner.states import PlanState

Sorted = sa.ColumnElement[Any]


def _text(column: Sorted) -> Sorted:
    """Return a column with an empty text for NULL, which each kind of database sorts elsewhere."""
    return sa.func.coalesce(column, sa.literal_column("''", sa.String))


def _time(*columns: Sorted) -> Sorted:
    """Return the first of these times that is not NULL, or a time before all others."""
    earliest = sa.literal(datetime(1000, 1, 1, tzinfo=UTC), Moment)
    return sa.func.coalesce(*columns, earliest, type_=Moment)


@cache
def _plan_keys() -> dict[PlanKey, Sorted]:
    return {
        PlanKey.SAVED: plans.c.number,
        PlanKey.UUID: plans.c.uuid,
        PlanKey.STATE: plans.c.state,
        PlanKey.MESSAGE: _text(plans.c.status_message),
        PlanKey.AUDIT: _text(plans.c.audit_uuid),
        PlanKey.STRATEGY: _text(plans.c.strategy_name),
        PlanKey.EFFICACY: plans.c.global_efficacy,
        PlanKey.HOST: _text(plans.c.claimant_host),
        PlanKey.CREATED: _time(plans.c.created_at),
        PlanKey.UPDATED: _time(plans.c.updated_at),
    }


@cache
def _action_keys() -> dict[ActionKey, Sorted]:
    return {
        ActionKey.SAVED: plans.c.number,
        ActionKey.UUID: actions.c.uuid,
        ActionKey.PLAN: plans.c.uuid,
        ActionKey.TYPE: action_states.c.action_type,
        ActionKey.STATE: action_states.c.state,
        ActionKey.MESSAGE: _text(action_states.c.status_message),
        ActionKey.PARENTS: actions.c.parents,
        ActionKey.CREATED: _time(plans.c.created_at),
        ActionKey.UPDATED: _time(action_states.c.ended_at, action_states.c.started_at),
    }


_PLAN_FILTERS: dict[str, Sorted] = {
    "audit": plans.c.audit_uuid,
    "strategy": plans.c.strategy_name,
    "state": plans.c.state,
}
_ACTION_FILTERS: dict[str, Sorted] = {"plan": plans.c.uuid, "audit": plans.c.audit_uuid}
_PLAN_KEY_COLUMNS = (plans.c.uuid, plans.c.state)


@cache
def _is_there() -> sa.ColumnElement[bool]:
    return plans.c.state != word(PlanState.DELETED)


@cache
def _joined() -> sa.Join:
    same = (action_states.c.plan == actions.c.plan) & (action_states.c.uuid == actions.c.uuid)
    return actions.join(plans, plans.c.uuid == actions.c.plan).join(action_states, same)


@cache
def _action_key_columns() -> tuple[Any, ...]:
    return (actions.c.uuid, actions.c.plan, plans.c.state.label("plan_state"))


@cache
def _action_columns() -> tuple[Any, ...]:
    return (
        *actions.c,
        *(c for c in action_states.c if c.key not in ("plan", "uuid")),
        plans.c.state.label("plan_state"),
        plans.c.created_at.label("plan_created_at"),
    )


@cache
def plans_page(
    key: PlanKey, descending: bool, marked: bool, filters: tuple[str, ...], keys_only: bool
) -> sa.Select[Any]:
    """Select a page of plans; if ``marked``, after the plan with the uuid ``marker``.

    With ``keys_only``, select only uuid and state, which can be read from most damaged rows.
    """
    order = (_plan_keys()[key], plans.c.number)
    columns = _PLAN_KEY_COLUMNS if keys_only else tuple(plans.c)
    found = sa.select(*columns).where(_is_there())
    found = found.where(*(_PLAN_FILTERS[name] == bindparam(name) for name in filters))
    if marked:
        mark = sa.select(*order).where(plans.c.uuid == bindparam("marker"))
        found = found.where(_after(order, mark, descending))
    return _limited(found, order, descending)


@cache
def actions_page(
    key: ActionKey, descending: bool, marked: bool, filters: tuple[str, ...], keys_only: bool
) -> sa.Select[Any]:
    """Select a page of actions; if ``marked``, after the action ``marker`` of ``marked_plan``.

    With ``keys_only``, select only uuid, plan and state of the plan.
    """
    order = (_action_keys()[key], plans.c.number, actions.c.position)
    columns = _action_key_columns() if keys_only else _action_columns()
    found = sa.select(*columns).select_from(_joined()).where(_is_there())
    found = found.where(*(_ACTION_FILTERS[name] == bindparam(name) for name in filters))
    if marked:
        of_mark = (
            actions.c.plan == bindparam("marked_plan"),
            actions.c.uuid == bindparam("marker"),
        )
        mark = sa.select(*order).select_from(_joined()).where(*of_mark)
        found = found.where(_after(order, mark, descending))
    return _limited(found, order, descending)


def _after(order: tuple[Sorted, ...], mark: sa.Select[Any], descending: bool) -> Sorted:
    """Return the condition that a row comes after the marked one."""
    marked = mark.subquery().select().correlate(None).scalar_subquery()
    return sa.tuple_(*order).op("<" if descending else ">", is_comparison=True)(marked)


def _limited(found: sa.Select[Any], order: tuple[Sorted, ...], descending: bool) -> sa.Select[Any]:
    # Without duplicates: a sort key may be the number of the plan, which is in every order.
    columns = dict.fromkeys(order)
    by = [column.desc() if descending else column.asc() for column in columns]
    return found.order_by(*by).limit(bindparam("most"))


#: The row of a plan that was not removed; uuid and state of any plan.
PLAN = Deferred(lambda: sa.select(plans).where(plans.c.uuid == bindparam("plan_uuid"), _is_there()))
PLAN_KEYS = Deferred(
    lambda: sa.select(*_PLAN_KEY_COLUMNS).where(plans.c.uuid == bindparam("plan_uuid"))
)
#: An action of one plan, with the columns of all tables.
ACTION = Deferred(
    lambda: (
        sa.select(*_action_columns())
        .select_from(_joined())
        .where(actions.c.plan == bindparam("plan_uuid"), actions.c.uuid == bindparam("action_uuid"))
    )
)
#: The plan saved last of those that have an action of this uuid; and the same for a given plan.
HOLDERS = Deferred(
    lambda: (
        sa.select(*_action_key_columns())
        .select_from(_joined())
        .where(actions.c.uuid == bindparam("action_uuid"), _is_there())
        .order_by(plans.c.number.desc())
        .limit(1)
    )
)
HOLDER = Deferred(lambda: HOLDERS().where(actions.c.plan == bindparam("plan_uuid")))
