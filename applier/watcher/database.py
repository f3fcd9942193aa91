# SPDX-License-Identifier: Apache-2.0
"""Watcher's database: transactions, the rows of a plan, and the tables that ActionPlan adds.

These are not linked to Watcher's tables by foreign keys, so that ``watcher-db-manage`` may remove
plans and migrate its tables as if they were not there.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_db import exception as db_exception
from oslo_db.api import wrap_db_retry
from oslo_db.sqlalchemy import enginefacade
from sqlalchemy.dialects import mysql
from watcher.db.sqlalchemy import models

from applier.errors import PlanNotFound, StoreError
from applier.watcher.states import cut

Called = TypeVar("Called", bound=Callable[..., Any])
_ERRORS = (db_exception.DBError, sa.exc.SQLAlchemyError)
PLANS, ACTIONS = models.ActionPlan.__table__, models.Action.__table__

#: The open transaction of each thread. Watcher's own objects use other transactions.
_CONTEXT = threading.local()

MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
Uuid, Word = sa.String(36), sa.String(32)

metadata = sa.MetaData()

#: The process that runs a plan, or ran it last: then ``claim`` is NULL. A plan that our engine
#: never ran has no row. ``service_host`` is the ``[DEFAULT] host`` of the applier.
runs = sa.Table(
    "actionplan_watcher_run",
    metadata,
    sa.Column("plan_uuid", Uuid, primary_key=True),
    sa.Column("claim", Uuid),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("user", sa.String(255), nullable=False),
    sa.Column("service_host", sa.String(255), nullable=False),
    sa.Column("interval_s", sa.Float, nullable=False),
    sa.Column("heartbeat_at", Moment, nullable=False),
    **MYSQL,
)

#: The attempts of actions; one without ``ended_at`` is open. ``started_under`` and ``ended_under``
#: are the claims at its start and end. A commit that changes an attempt replaces its row, so that
#: ``id`` is in the order of the commits.
attempts = sa.Table(
    "actionplan_watcher_attempt",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("plan_uuid", Uuid, nullable=False),
    sa.Column("action_uuid", Uuid, nullable=False),
    sa.Column("action_type", sa.String(255), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("started_under", Uuid, nullable=False),
    sa.Column("ended_at", Moment),
    sa.Column("ended_under", Uuid),
    sa.Column("state", Word),
    sa.Column("outcome", Word),
    sa.Column("message", sa.Text),
    sa.UniqueConstraint(
        "plan_uuid", "action_uuid", "number", name="uniq_actionplan_watcher_attempt"
    ),
    sa.Index("actionplan_watcher_attempt_by_type", "action_type", "id"),
    **MYSQL,
)


@contextmanager
def reading() -> Iterator[sa.Connection]:
    """Open a transaction that only reads."""
    with enginefacade.reader.connection.using(_CONTEXT) as connection:
        yield connection


@contextmanager
def writing() -> Iterator[sa.Connection]:
    """Open a transaction that is committed at the end of the block, or rolled back by an error."""
    with enginefacade.writer.connection.using(_CONTEXT) as connection:
        yield connection


def translated(function: Called) -> Called:
    """Decorate a function that uses transactions: its database errors become StoreError.

    If a deadlock ends its transaction, the function is called again, up to five times.
    """
    again = wrap_db_retry(max_retries=5, retry_interval=0.05, retry_on_deadlock=True)(function)

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return again(*args, **kwargs)
        except _ERRORS as error:
            why = str(error).partition("\n")[0]
            raise StoreError(f"Watcher's database cannot be used: {why}") from error

    return called  # type: ignore[return-value]


def naive(moment: datetime) -> datetime:
    """Return a moment as it stands in columns: in UTC, without a time zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def plan_row(connection: sa.Connection, uuid: str, *, lock: bool = False) -> Any:
    """Return the row of a plan; with ``lock``, lock it for the transaction. Raises PlanNotFound."""
    query = sa.select(PLANS).where(PLANS.c.uuid == uuid)
    row = connection.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise PlanNotFound(uuid)
    return row


def among(plan_id: Any, states: Sequence[str] = ()) -> Any:
    """Return the condition for the actions of a plan that are not deleted.

    With ``states``, it holds only for those in one of them.
    """
    kept = sa.and_(ACTIONS.c.action_plan_id == plan_id, ACTIONS.c.deleted_at.is_(None))
    return kept & ACTIONS.c.state.in_(states) if states else kept


def actions_of(plan_id: Any, states: Sequence[str] = ()) -> Any:
    """Return the query for the actions of :func:`among`, in the order of the plan."""
    return sa.select(ACTIONS).where(among(plan_id, states)).order_by(ACTIONS.c.id)


def set_plan(connection: sa.Connection, row: Any, now: datetime, **values: Any) -> bool:
    """Change a plan, unless its state differs from that in ``row``; return whether it did not."""
    same = sa.update(PLANS).where(PLANS.c.id == row.id, PLANS.c.state == row.state)
    return connection.execute(same.values(**values, updated_at=naive(now))).rowcount == 1


def set_actions(
    connection: sa.Connection, which: Any, now: datetime, state: str, message: str | None
) -> None:
    """Change the state and the message of the actions for which the condition ``which`` holds."""
    values = {"state": state, "status_message": cut(message), "updated_at": naive(now)}
    connection.execute(sa.update(ACTIONS).where(which).values(**values))


def attempts_of(
    connection: sa.Connection, plan: str, actions: Sequence[str] | None = None
) -> dict[str, list[Any]]:
    """Return the rows of attempts by action, oldest first; None means those of all actions."""
    query = sa.select(attempts).where(attempts.c.plan_uuid == plan).order_by(attempts.c.number)
    if actions is not None:
        query = query.where(attempts.c.action_uuid.in_(actions))
    found: dict[str, list[Any]] = defaultdict(list)
    for row in connection.execute(query):
        found[row.action_uuid].append(row)
    return found


@translated
def prepare() -> None:
    """Create the tables that ActionPlan adds, unless they are there.

    Several processes may do so at once.
    """
    engine = enginefacade.writer.get_engine()
    for table in metadata.sorted_tables:
        try:
            table.create(engine, checkfirst=True)
            # MySQL commits each by itself: a process may have been killed between them.
            for index in table.indexes:
                index.create(engine, checkfirst=True)
        except _ERRORS:
            if not has_table(table):  # else another process has created it meanwhile
                raise


@translated
def has_table(table: sa.Table) -> bool:
    """Return whether the database has a table."""
    with reading() as connection:
        return sa.inspect(connection).has_table(table.name)
