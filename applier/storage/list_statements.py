# SPDX-License-Identifier: Apache-2.0
"""The statements that list plans, the newest first, and count them.

Each is built when it is first needed, one for each set of filters. The values of a request are bind
parameters, never parts of a statement. Every filter has an index whose rows are in the order of the
list. So a list of 25 plans costs the same in a record of any size.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.compiled import Deferred, word
from applier.storage.tables import action_states, plans
from applier.store import TIMES
from planner.model import JOIN
from planner.states import PlanState

Wanted = sa.ColumnElement[bool]
_MADE = plans.c.created_at


def _exactly(column: sa.ColumnElement[str], name: str) -> Wanted:
    """Compare a text. The lengths are compared because MySQL's = ignores trailing spaces."""
    value = bindparam(name, type_=sa.String)
    return (column == value) & (sa.func.length(column) == sa.func.length(value))


def _not_indexed(column: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Return an expression of a column that keeps the database from using the column's index.

    It then uses the index of the time of creation, whose rows are in the order of the list.
    """
    return sa.func.coalesce(column, sa.literal_column("''", sa.String))


def _wanted(filters: tuple[str, ...]) -> Wanted:
    """Return the condition on the plans of a list; without "state", it excludes removed plans."""
    by_time = not set(TIMES).isdisjoint(filters)
    conditions: list[Wanted] = []
    if "state" not in filters:
        conditions.append(plans.c.state != word(PlanState.DELETED))
    for name in filters:
        if name == "since":
            conditions.append(bindparam("since", type_=_MADE.type) <= _MADE)
        elif name == "until":
            conditions.append(bindparam("until", type_=_MADE.type) > _MADE)
        else:
            column = plans.c[name]
            conditions.append(_exactly(_not_indexed(column) if by_time else column, name))
    return sa.and_(*conditions)


def _newest(filters: tuple[str, ...], *columns: Any) -> sa.Select[Any]:
    """Select columns of the newest plans that pass these filters, at most ``most``."""
    by_time = not set(TIMES).isdisjoint(filters)
    order = [_MADE.desc()] if by_time else []
    found = sa.select(*columns).where(_wanted(filters))
    return found.order_by(*order, plans.c.number.desc()).limit(bindparam("most"))


def _counts_of(newest: sa.Subquery) -> sa.Select[Any]:
    # IN instead of JOIN: SQLite then reads the rows of these plans only. MySQL accepts a LIMIT in
    # an IN only inside a derived table.
    return (
        sa.select(action_states.c.plan, action_states.c.state, sa.func.count().label("number"))
        .where(
            action_states.c.plan.in_(sa.select(newest.c.uuid)),
            action_states.c.action_type != word(JOIN),
        )
        .group_by(action_states.c.plan, action_states.c.state)
    )


@cache
def newest(filters: tuple[str, ...]) -> sa.Select[Any]:
    """Select the rows of the newest plans that pass these filters, at most ``most``."""
    return _newest(filters, plans)


@cache
def counts(filters: tuple[str, ...]) -> sa.Select[Any]:
    """Select how many actions of the plans of :func:`newest` are in each state, without joins."""
    return _counts_of(_newest(filters, plans.c.uuid).subquery())


@cache
def number(filters: tuple[str, ...]) -> sa.Select[Any]:
    """Select the number of plans that pass these filters, at most ``most``."""
    some = sa.select(plans.c.number).where(_wanted(filters)).limit(bindparam("most")).subquery()
    return sa.select(sa.func.count().label("number")).select_from(some)


#: How many actions of one plan are in each state, except those of the type join.
COUNTS = Deferred(
    lambda: _counts_of(
        sa.select(plans.c.uuid).where(plans.c.uuid == bindparam("plan_uuid")).subquery()
    )
)
