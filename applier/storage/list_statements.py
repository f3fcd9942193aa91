# SPDX-License-Identifier: Apache-2.0
"""The statements that list plans, the newest first, and count them.

Each is made when it is first needed, one for each set of filters. The values of a request are
parameters, never parts of a statement. Every filter but ``search`` and ``needs_you`` has an index
whose rows are in the order of the list. So a list of 25 plans costs the same in a record of any
size, wherever it begins.
"""

from __future__ import annotations

from functools import cache

from applier.store import TIMES

#: The number and the time of creation of the plan that a list begins after.
_MARK = "(SELECT {} FROM actionplan_plan WHERE uuid = :after)"

#: Plans that are paused or in doubt, and those that may lack approvals: the site demands up to
#: ``needs_you`` of them. An approval of a plan that was never run may be void for other reasons.
_NEEDS_YOU = """(state = 'PAUSED'
    OR (state IN ('RECOMMENDED', 'FAILED', 'CANCELLED') AND approvals + :needs_you > 0
        AND (claimed_at IS NULL OR (
            SELECT count(DISTINCT a.who) FROM actionplan_approval AS a
            WHERE a.plan = actionplan_plan.uuid AND a.content = actionplan_plan.digest
        ) < CASE WHEN approvals > :needs_you THEN approvals ELSE :needs_you END))
    OR (doubtful = 1 AND state IN ('FAILED', 'CANCELLED', 'ONGOING') AND EXISTS (
        SELECT s.uuid FROM actionplan_action_state AS s
        WHERE s.plan = actionplan_plan.uuid AND s.state = 'UNKNOWN')))"""


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


def _newest(filters: tuple[str, ...], columns: str, *, is_rest: bool) -> str:
    """Select columns of the newest plans that pass these filters, at most ``most``."""
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
def newest(filters: tuple[str, ...], *, is_rest: bool = False) -> str:
    """Select the rows of the newest plans that pass these filters, at most ``most``.

    ``is_rest`` selects those that come after the plan with the uuid ``after``.
    """
    return _newest(filters, "*", is_rest=is_rest)


@cache
def counts(filters: tuple[str, ...], *, is_rest: bool = False) -> str:
    """Select how many actions of the plans of :func:`newest` are in each state, without joins."""
    return _counts_of(_newest(filters, "uuid", is_rest=is_rest))


@cache
def number(filters: tuple[str, ...]) -> str:
    """Select the number of plans that pass these filters, at most ``most``."""
    some = f"SELECT number FROM actionplan_plan WHERE {_wanted(filters)} LIMIT :most"
    return f"SELECT count(*) AS number FROM ({some}) AS some_plans"


#: How many actions of one plan are in each state, except those of the type join.
COUNTS = _counts_of("SELECT uuid FROM actionplan_plan WHERE uuid = :plan_uuid")
