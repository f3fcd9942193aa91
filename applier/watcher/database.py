# SPDX-License-Identifier: Apache-2.0
"""Transactions on Watcher's database, the rows of a plan, and the version of our tables."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from oslo_db import exception as db_exception
from oslo_db.api import wrap_db_retry
from oslo_db.sqlalchemy import enginefacade
from watcher.db.sqlalchemy import models

from applier.errors import PlanNotFound, StoreError
from applier.watcher.states import cut
from applier.watcher.tables import REVISIONS, VERSION_TABLE, attempts

Called = TypeVar("Called", bound=Callable[..., Any])
PLANS, ACTIONS = models.ActionPlan.__table__, models.Action.__table__

#: The open transaction of each thread. Watcher's own objects use other transactions.
_CONTEXT = threading.local()
#: By SQL dialect: the statements that lock the tables of ActionPlan against changes by other
#: processes, and release them.
_LOCKS = {
    "mysql": ("SELECT GET_LOCK('actionplan_watcher', 60)", "DO RELEASE_LOCK('actionplan_watcher')"),
    "postgresql": (
        "SELECT pg_advisory_lock(hashtext('actionplan_watcher'))",
        "SELECT pg_advisory_unlock(hashtext('actionplan_watcher'))",
    ),
}


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
        except (db_exception.DBError, sa.exc.SQLAlchemyError) as error:
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
    """Create the tables that ActionPlan adds, or upgrade them to this release.

    Several processes may do so at once. Raises StoreError for tables of a newer release.
    """
    with reading() as connection:
        if _version(connection) == REVISIONS[-1]:
            return
    engine = enginefacade.writer.get_engine()
    with engine.connect() as connection, _alone(connection):
        with connection.begin():
            current = _version(connection) == REVISIONS[-1]
        if not current:
            with connection.begin():
                _migrate(connection, "head")


def _version(connection: sa.Connection) -> str | None:
    """Return the version of the tables; None without tables. Raises StoreError for a newer one."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    column: sa.ColumnClause[str] = sa.column("version_num")
    found = connection.execute(sa.select(column).select_from(sa.table(VERSION_TABLE))).scalar()
    if found is not None and found not in REVISIONS:
        raise StoreError(
            f"the tables that ActionPlan added to Watcher's database have version {found}, of a "
            f"newer release than this one, which knows versions up to {REVISIONS[-1]}"
        )
    return found


@contextmanager
def _alone(connection: sa.Connection) -> Iterator[None]:
    """Hold the lock on the tables of ActionPlan for the block; wait until no other process has it.

    Raises StoreError if MySQL has not granted the lock in 60 s. SQLite has no such lock.
    """
    lock, release = _LOCKS.get(connection.dialect.name, (None, None))
    if lock is None or release is None:
        yield
        return
    with connection.begin():
        if connection.exec_driver_sql(lock).scalar() == 0:
            raise StoreError("another process has changed the tables of ActionPlan for 60 s")
    try:
        yield
    finally:
        with connection.begin():
            connection.exec_driver_sql(release)


def _migrate(connection: sa.Connection, revision: str) -> None:
    # The import takes long, and is needed once in the life of a database.
    from alembic import command
    from alembic.config import Config

    config = Config()
    folder = str(Path(__file__).with_name("migrations"))
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
