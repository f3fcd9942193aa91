# SPDX-License-Identifier: Apache-2.0
"""The statements that list plans and actions page by page.

Each is made when it is first needed: one for each combination of sort key, direction and filters.
The values of a request are parameters, never parts of a statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from applier.store.plans import ActionKey, PlanKey

#: Stands for NULL in an order: an empty text, and a time before all others.
_EARLIEST = "'1000-01-01 00:00:00.000000'"

_PLAN_KEYS: Mapping[PlanKey, str] = {
    PlanKey.SAVED: "p.number",
    PlanKey.UUID: "p.uuid",
    PlanKey.STATE: "p.state",
    PlanKey.MESSAGE: "coalesce(p.status_message, '')",
    PlanKey.AUDIT: "coalesce(p.audit_uuid, '')",
    PlanKey.STRATEGY: "coalesce(p.strategy_name, '')",
    PlanKey.EFFICACY: "p.global_efficacy",
    PlanKey.HOST: "coalesce(p.claimant_host, '')",
    PlanKey.CREATED: f"coalesce(p.created_at, {_EARLIEST})",
    PlanKey.UPDATED: f"coalesce(p.updated_at, {_EARLIEST})",
}
_ACTION_KEYS: Mapping[ActionKey, str] = {
    ActionKey.SAVED: "p.number",
    ActionKey.UUID: "a.uuid",
    ActionKey.PLAN: "p.uuid",
    ActionKey.TYPE: "s.action_type",
    ActionKey.STATE: "s.state",
    ActionKey.MESSAGE: "coalesce(s.status_message, '')",
    ActionKey.PARENTS: "a.parents",
    ActionKey.CREATED: f"coalesce(p.created_at, {_EARLIEST})",
    ActionKey.UPDATED: f"coalesce(s.ended_at, s.started_at, {_EARLIEST})",
}
_FILTERS = {"audit": "p.audit_uuid", "strategy": "p.strategy_name", "state": "p.state"} | {
    "plan": "p.uuid",
    "action_state": "s.state",
    "action_type": "s.action_type",
}
_PLANS = "actionplan_plan AS p"
_ACTIONS = """actionplan_action AS a JOIN actionplan_plan AS p ON p.uuid = a.plan
    JOIN actionplan_action_state AS s ON s.plan = a.plan AND s.uuid = a.uuid"""
_ACTION_COLUMNS = """a.*, s.action_type, s.state, s.outcome, s.state_reason, s.status_message,
        s.started_at, s.ended_at, s.attempts, p.state AS plan_state, p.created_at AS plan_created_at
"""


@cache
def plans_page(
    key: PlanKey, descending: bool, marked: bool, filters: tuple[str, ...], keys_only: bool
) -> str:
    """Select a page of plans; if ``marked``, after the plan with the uuid ``marker``.

    With ``keys_only``, select only uuid and state, which can be read from most damaged rows.
    """
    columns = "p.uuid, p.state" if keys_only else "p.*"
    order, mark = (_PLAN_KEYS[key], "p.number"), "p.uuid = :marker" if marked else ""
    return _page(columns, _PLANS, order, filters, mark, descending)


@cache
def actions_page(key: ActionKey, descending: bool, marked: bool, filters: tuple[str, ...]) -> str:
    """Select a page of actions; if ``marked``, after the action ``marker`` of ``marked_plan``."""
    order = (_ACTION_KEYS[key], "p.number", "a.position")
    mark = "a.plan = :marked_plan AND a.uuid = :marker" if marked else ""
    return _page(_ACTION_COLUMNS, _ACTIONS, order, filters, mark, descending)


def _page(
    columns: str,
    tables: str,
    order: tuple[str, ...],
    filters: tuple[str, ...],
    mark: str,
    descending: bool,
) -> str:
    """Return the statement of a page; ``mark`` is the condition of the row that it comes after."""
    wanted = ["p.state != 'DELETED'", *(f"{_FILTERS[name]} = :{name}" for name in filters)]
    if mark:
        keys = ", ".join(order)
        after = "<" if descending else ">"
        wanted.append(f"({keys}) {after} (SELECT {keys} FROM {tables} WHERE {mark})")
    way = "DESC" if descending else "ASC"
    # Without duplicates: a sort key may be the number of the plan, which is in every order.
    by = ", ".join(f"{column} {way}" for column in dict.fromkeys(order))
    return f"SELECT {columns} FROM {tables} WHERE {' AND '.join(wanted)} ORDER BY {by} LIMIT :most"


#: The row of a plan that was not removed; uuid and state of any plan.
PLAN = "SELECT * FROM actionplan_plan WHERE uuid = :plan_uuid AND state != 'DELETED'"
PLAN_KEYS = "SELECT uuid, state FROM actionplan_plan WHERE uuid = :plan_uuid"
#: An action of one plan, with the columns of all tables.
ACTION = f"""
    SELECT {_ACTION_COLUMNS} FROM {_ACTIONS} WHERE a.plan = :plan_uuid AND a.uuid = :action_uuid"""
#: The plan saved last of those that have an action of this uuid; and the same for a given plan.
_HOLDERS = f"""
    SELECT a.plan FROM {_ACTIONS}
    WHERE a.uuid = :action_uuid AND p.state != 'DELETED'"""
HOLDERS = f"{_HOLDERS} ORDER BY p.number DESC LIMIT 1"
HOLDER = f"{_HOLDERS} AND a.plan = :plan_uuid ORDER BY p.number DESC LIMIT 1"
