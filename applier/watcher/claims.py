# SPDX-License-Identifier: Apache-2.0
"""Claims: which process runs a plan, in the table ``actionplan_watcher_run``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from oslo_db.exception import DBDuplicateEntry
from watcher.db.sqlalchemy import models

from applier.contracts import Claimant
from applier.errors import PlanConflict, PlanNotFound
from applier.storage.claims import lost_claim
from applier.watcher import database
from applier.watcher.tables import runs

PLANS = models.ActionPlan.__table__
#: The states in which Watcher's handler gives a plan to an engine, or a user cancels it then.
_CLAIMABLE = ("PENDING", "ONGOING", "CANCELLING")


def naive(moment: datetime) -> datetime:
    """Return a moment as it stands in columns: in UTC, without a time zone."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def plan_row(connection: sa.Connection, uuid: str, *, lock: bool = False) -> Any:
    """Return the row of a plan, locked for the transaction if asked; raises PlanNotFound."""
    query = sa.select(PLANS).where(PLANS.c.uuid == uuid)
    row = connection.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise PlanNotFound(uuid)
    return row


@database.translated
def claim(
    uuid: str, claimant: Claimant, *, service_host: str, hostname: str | None, now: datetime
) -> str:
    """Claim a plan that nobody runs, and set its ``hostname``; return the claim.

    Raises PlanConflict.
    """
    token = str(uuid4())
    values = {
        "claim": token,
        "host": claimant.host,
        "pid": claimant.pid,
        "user": claimant.user,
        "service_host": service_host,
        "interval_s": claimant.heartbeat_interval_s,
        "heartbeat_at": naive(now),
    }
    try:
        with database.writing() as connection:
            free = sa.update(runs).where(runs.c.plan_uuid == uuid, runs.c.claim.is_(None))
            claimed = connection.execute(free.values(**values)).rowcount
            row = plan_row(connection, uuid, lock=True)
            if row.state not in _CLAIMABLE:
                raise PlanConflict(uuid, row.state, f"plan {uuid} is {row.state}: it cannot be run")
            taken = {"hostname": hostname, "updated_at": naive(now)}
            if row.state == "PENDING":
                taken["state"] = "ONGOING"
            connection.execute(sa.update(PLANS).where(PLANS.c.id == row.id).values(**taken))
            if not claimed:
                connection.execute(sa.insert(runs).values(plan_uuid=uuid, **values))
    except DBDuplicateEntry as taken:
        text = f"plan {uuid} is ONGOING: another applier runs it"
        raise PlanConflict(uuid, "ONGOING", text) from taken
    return token


@database.translated
def claimant(uuid: str) -> Claimant | None:
    """Return who runs a plan, None if nobody does."""
    with database.reading() as connection:
        row = run_row(connection, uuid)
    return None if row is None or row.claim is None else claimant_of(row)


@database.translated
def last_claimant(uuid: str) -> Claimant | None:
    """Return who ran a plan last, None if it was never run by this engine."""
    with database.reading() as connection:
        row = run_row(connection, uuid)
    return None if row is None else claimant_of(row)


def run_row(connection: sa.Connection, uuid: str) -> Any:
    """Return the row of a plan's run, None if there is none."""
    return connection.execute(sa.select(runs).where(runs.c.plan_uuid == uuid)).first()


def claimant_of(row: Any) -> Claimant:
    """Return the claimant in the row of a run."""
    return Claimant(
        host=row.host,
        pid=row.pid,
        user=row.user,
        heartbeat_at=row.heartbeat_at.replace(tzinfo=UTC),
        heartbeat_interval_s=row.interval_s,
    )


def hold(connection: sa.Connection, uuid: str, token: str, now: datetime) -> None:
    """Write a heartbeat, and lock the claim for the transaction; raises PlanConflict."""
    mine = sa.update(runs).where(runs.c.plan_uuid == uuid, runs.c.claim == token)
    if connection.execute(mine.values(heartbeat_at=naive(now))).rowcount != 1:
        raise lost_claim(uuid, plan_row(connection, uuid).state)


def release(connection: sa.Connection, uuid: str, token: str) -> None:
    """End a claim; raises PlanConflict if it has ended already."""
    mine = sa.update(runs).where(runs.c.plan_uuid == uuid, runs.c.claim == token)
    if connection.execute(mine.values(claim=None)).rowcount != 1:
        raise lost_claim(uuid, plan_row(connection, uuid).state)


def end(connection: sa.Connection, uuid: str, seen: Claimant) -> None:
    """End the claim of a claimant that has died; raises PlanConflict if it was heard of since."""
    dead = sa.update(runs).where(
        runs.c.plan_uuid == uuid,
        runs.c.claim.is_not(None),
        runs.c.host == seen.host,
        runs.c.pid == seen.pid,
        runs.c.heartbeat_at == (seen.heartbeat_at and naive(seen.heartbeat_at)),
    )
    if connection.execute(dead.values(claim=None)).rowcount != 1:
        state = plan_row(connection, uuid).state
        text = f"plan {uuid} is {state}: who runs it was heard of, or has ended its claim"
        raise PlanConflict(uuid, state, text)
