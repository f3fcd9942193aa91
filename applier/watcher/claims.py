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
#: The states that a plan may have when Watcher's handler calls the engine, or a user cancels it.
_CLAIMABLE = ("PENDING", "ONGOING", "CANCELLING")


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


@database.translated
def claim(
    uuid: str, claimant: Claimant, *, service_host: str, hostname: str | None, now: datetime
) -> str:
    """Claim a plan that nobody runs, set its ``hostname``, and return the claim, a new uuid.

    A PENDING plan becomes ONGOING. Raises PlanConflict if the plan has a claimant or is not in one
    of the states in which it can be run, and PlanNotFound.
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
    """Return the process that runs a plan; None if no process of this engine does."""
    with database.reading() as connection:
        row = run_row(connection, uuid)
    return None if row is None or row.claim is None else claimant_of(row)


@database.translated
def last_claimant(uuid: str) -> Claimant | None:
    """Return the process that claimed a plan last, also if it runs it now; None if none did."""
    with database.reading() as connection:
        row = run_row(connection, uuid)
    return None if row is None else claimant_of(row)


def run_row(connection: sa.Connection, uuid: str) -> Any:
    """Return the row of a plan in the table of runs; None if this engine never ran it."""
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
    """Write a heartbeat, and lock the claim for the transaction; raise PlanConflict if it ended."""
    mine = sa.update(runs).where(runs.c.plan_uuid == uuid, runs.c.claim == token)
    if connection.execute(mine.values(heartbeat_at=naive(now))).rowcount != 1:
        raise lost_claim(uuid, plan_row(connection, uuid).state)


def release(connection: sa.Connection, uuid: str, token: str) -> None:
    """End a claim; raises PlanConflict if it has ended already."""
    mine = sa.update(runs).where(runs.c.plan_uuid == uuid, runs.c.claim == token)
    if connection.execute(mine.values(claim=None)).rowcount != 1:
        raise lost_claim(uuid, plan_row(connection, uuid).state)


def end(connection: sa.Connection, uuid: str, seen: Claimant) -> None:
    """End the claim of a process that has died.

    Raises PlanConflict if a heartbeat was written after ``seen`` was read, or the claim has ended.
    """
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
