# SPDX-License-Identifier: Apache-2.0
"""The statements that list and count plans, the newest first, and plans and actions page by page.

Each is made when it is first needed: one for each combination of filters, sort key and direction.
The values of a request are parameters, never parts of a statement. For the newest plans, every
filter but ``search`` and ``needs_you`` has an index whose rows are in the order of the list. So a
list of 25 plans costs the same in a record of any size, wherever it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from applier.storage import statements
from applier.store import TIMES
from applier.store.plans import ActionKey, PlanKey

#: The number and the time of creation of the plan that a list begins after.
_MARK = "(SELECT {} FROM actionplan_plan WHERE uuid = :after)"

#: Plans that are paused or in doubt, that run (their applier may be gone), and those that may lack
#: approvals: the site demands up to ``needs_you`` of them. Approvals of a plan of which nothing has
#: run may be void for other reasons, and those of its creator may not count: who reads the list
#: decides of each plan.
_NEEDS_YOU = f"""(state IN ('PAUSED', 'ONGOING', 'CANCELLING')
    OR (state IN ('RECOMMENDED', 'FAILED', 'CANCELLED') AND approvals + :needs_you > 0
        AND (claimed_at IS NULL OR NOT EXISTS (
            SELECT s.uuid FROM actionplan_action_state AS s
            WHERE s.plan = actionplan_plan.uuid AND s.attempts > 0
        ) OR (
            SELECT count(DISTINCT a.who) FROM actionplan_approval AS a
            WHERE a.plan = actionplan_plan.uuid AND a.content = actionplan_plan.digest
            AND a.who != actionplan_plan.creator
        ) < CASE WHEN approvals > :needs_you THEN approvals ELSE :needs_you END))
    OR ({statements.IN_DOUBT}))"""


def _wanted(filters: tuple[str, ...], *, is_rest: bool = False) -> str:
    """Return the condition on the plans of a list; without "state", it excludes removed plans.

    ``is_rest`` leaves out the plan ``after`` and those before it in the list.
    """
    by_time = not set(TIMES).isdisjoint(filters)
    conditions = [] if "state" in filters else ["state != 'DELETED'"]
    for name in filters:
        if name == "since":
            conditions.append("created_at >= :since")
        elif name == "until":
            conditions.append("created_at < :until")
        elif name == "needs_you":
            conditions.append(_NEEDS_YOU)
        elif name == "search":
            conditions.append("lower(name) LIKE lower(:search) ESCAPE '/'")
        else:
            # The function keeps the database from using the column's index: it then uses that of
            # the time of creation, whose rows are in the order of the list.
            column = f"coalesce({name}, '')" if by_time else name
            # The lengths are compared because MySQL's = ignores trailing spaces.
            conditions.append(f"{column} = :{name} AND length({column}) = length(:{name})")
    if is_rest:
        later = f"number < {_MARK.format('number')}"
        if by_time:
            made = _MARK.format("created_at")
            # The first of the two bounds the part of the index that is read.
            later = f"created_at <= {made} AND (created_at < {made} OR {later})"
        conditions.append(later)
    return " AND ".join(conditions) or "1 = 1"


@cache
def newest(filters: tuple[str, ...], columns: str = "*", *, is_rest: bool = False) -> str:
    """Select the rows of the newest plans that pass these filters, at most ``most``.

    ``is_rest`` selects those that come after the plan with the uuid ``after``.
    """
    order = "number DESC" if set(TIMES).isdisjoint(filters) else "created_at DESC, number DESC"
    return (
        f"SELECT {columns} FROM actionplan_plan WHERE {_wanted(filters, is_rest=is_rest)}"
        f" ORDER BY {order} LIMIT :most"
    )


def _counts_of(newest: str) -> str:
    # IN instead of JOIN: SQLite then reads the rows of these plans only. MySQL accepts a LIMIT in
    # an IN only inside a derived table.
    return f"""
    SELECT plan, state, count(*) AS number FROM actionplan_action_state
    WHERE plan IN (SELECT uuid FROM ({newest}) AS newest) AND action_type != 'join'
    GROUP BY plan, state"""


@cache
def counts(filters: tuple[str, ...], *, is_rest: bool = False) -> str:
    """Select how many actions of the plans of :func:`newest` are in each state, without joins."""
    return _counts_of(newest(filters, "uuid", is_rest=is_rest))


@cache
def passing(filters: tuple[str, ...]) -> str:
    """Select the number of one plan if it passes these filters."""
    return f"SELECT number FROM actionplan_plan WHERE uuid = :plan_uuid AND {_wanted(filters)}"


@cache
def number(filters: tuple[str, ...]) -> str:
    """Select the number of plans that pass these filters, at most ``most``."""
    some = f"SELECT number FROM actionplan_plan WHERE {_wanted(filters)} LIMIT :most"
    return f"SELECT count(*) AS number FROM ({some}) AS some_plans"


#: How many actions of one plan are in each state, except those of the type join.
COUNTS = _counts_of("SELECT uuid FROM actionplan_plan WHERE uuid = :plan_uuid")


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


#: An action of one plan, with the columns of all tables.
ACTION = f"""
    SELECT {_ACTION_COLUMNS} FROM {_ACTIONS} WHERE a.plan = :plan_uuid AND a.uuid = :action_uuid"""
#: The plan saved last of those that have an action of this uuid; and the same for a given plan.
_HOLDERS = f"""
    SELECT a.plan FROM {_ACTIONS}
    WHERE a.uuid = :action_uuid AND p.state != 'DELETED'"""
HOLDERS = f"{_HOLDERS} ORDER BY p.number DESC LIMIT 1"
HOLDER = f"{_HOLDERS} AND a.plan = :plan_uuid ORDER BY p.number DESC LIMIT 1"
