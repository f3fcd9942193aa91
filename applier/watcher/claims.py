# SPDX-License-Identifier: Apache-2.0
"""Claims: which process runs a plan, in the table ``actionplan_watcher_run``.

Watcher cancels a plan and its actions, row by row, when an applier has not reported for some time,
and when an applier with the same host name starts. An applier that still holds the claim on the
plan is alive: the cancel is a false alarm, and is undone.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from oslo_db.exception import DBDuplicateEntry

from applier.contracts import Claimant
from applier.errors import PlanConflict
from applier.notifications.watcher import action_word
from applier.run.liveness import is_gone
from applier.run.this_process import this_host
from applier.storage.state_refusals import lost_claim
from applier.watcher import database
from applier.watcher.database import ACTIONS, naive, plan_row, runs
from applier.watcher.states import stopped_action, stopped_plan
from planner.plan.states import ActionState

LOG = logging.getLogger(__name__)
#: The states that a plan may have when Watcher's handler calls the engine, or a user cancels it.
_CLAIMABLE = ("PENDING", "ONGOING", "CANCELLING")
#: The plan in the row of ``actionplan-watcher resume --follow``: a heartbeat without a claim.
FOLLOWER = "00000000-0000-0000-0000-000000000000"
#: A follower on another host whose last heartbeat is older counts as gone, in seconds. Its clock
#: may be wrong: then plans keep their ``hostname``, and Watcher cancels them after a crash.
_FOLLOWED_S = 60.0


@database.translated
def claim(
    uuid: str, claimant: Claimant, *, service_host: str, hostname: str | None, now: datetime
) -> str:
    """Claim a plan that nobody runs, set its ``hostname``, and return the claim, a new uuid.

    A PENDING plan becomes ONGOING. Raises PlanConflict if the plan has a claimant or is not in one
    of the states in which it can be run, and PlanNotFound.
    """
    token = str(uuid4())
    values = {**_values(claimant, now), "claim": token, "service_host": service_host}
    try:
        with database.writing() as connection:
            claimed = _set(connection, uuid, runs.c.claim.is_(None), **values)
            row = plan_row(connection, uuid, lock=True)
            if row.state not in _CLAIMABLE:
                raise PlanConflict(uuid, row.state, f"plan {uuid} is {row.state}: it cannot be run")
            state = "ONGOING" if row.state == "PENDING" else row.state
            database.set_plan(connection, row, now, hostname=hostname, state=state)
            if not claimed:
                connection.execute(sa.insert(runs).values(plan_uuid=uuid, **values))
    except DBDuplicateEntry as taken:
        text = f"plan {uuid} is ONGOING: another applier runs it"
        raise PlanConflict(uuid, "ONGOING", text) from taken
    return token


def _values(claimant: Claimant, now: datetime) -> dict[str, Any]:
    return {
        "host": claimant.host,
        "pid": claimant.pid,
        "user": claimant.user,
        "interval_s": claimant.heartbeat_interval_s,
        "heartbeat_at": naive(now),
    }


def _set(connection: sa.Connection, uuid: str, *where: Any, **values: Any) -> bool:
    """Change the row of a run if all of ``where`` holds; return whether it did."""
    mine = sa.update(runs).where(runs.c.plan_uuid == uuid, *where)
    return connection.execute(mine.values(**values)).rowcount == 1


@database.translated
def claimant(uuid: str) -> Claimant | None:
    """Return the process that runs a plan; None if no process of this engine does."""
    with database.reading() as connection:
        row = run_row(connection, uuid)
    return None if row is None or row.claim is None else _claimant_of(row)


@database.translated
def last_claimant(uuid: str) -> Claimant | None:
    """Return the process that claimed a plan last, also if it runs it now; None if none did."""
    with database.reading() as connection:
        row = run_row(connection, uuid)
    return None if row is None else _claimant_of(row)


@database.translated
def claimed() -> dict[str, Claimant]:
    """Return the claimants of all claimed plans, by plan; also those that have died."""
    with database.reading() as connection:
        rows = connection.execute(sa.select(runs).where(runs.c.claim.is_not(None)))
        return {row.plan_uuid: _claimant_of(row) for row in rows}


@database.translated
def is_claimed_by(uuid: str, token: str | None) -> bool:
    """Return whether ``token`` is the current claim on a plan; False if it is None."""
    with database.reading() as connection:
        row = run_row(connection, uuid)
    return token is not None and row is not None and row.claim == token


def run_row(connection: sa.Connection, uuid: str) -> Any:
    """Return the row of a plan in the table of runs; None if this engine never ran it."""
    return connection.execute(sa.select(runs).where(runs.c.plan_uuid == uuid)).first()


def _claimant_of(row: Any) -> Claimant:
    return Claimant(
        host=row.host,
        pid=row.pid,
        user=row.user,
        heartbeat_at=row.heartbeat_at.replace(tzinfo=UTC),
        heartbeat_interval_s=row.interval_s,
    )


def hold(connection: sa.Connection, uuid: str, token: str, now: datetime) -> None:
    """Write a heartbeat, and lock the claim for the transaction; raise PlanConflict if it ended."""
    if not _set(connection, uuid, runs.c.claim == token, heartbeat_at=naive(now)):
        raise lost_claim(uuid, plan_row(connection, uuid).state)


def release(connection: sa.Connection, uuid: str, token: str) -> None:
    """End a claim; raises PlanConflict if it has ended already."""
    if not _set(connection, uuid, runs.c.claim == token, claim=None):
        raise lost_claim(uuid, plan_row(connection, uuid).state)


def end(connection: sa.Connection, uuid: str, seen: Claimant) -> None:
    """End the claim of a process that has died.

    Raises PlanConflict if a heartbeat was written after ``seen`` was read, or the claim has ended.
    """
    same = (
        runs.c.claim.is_not(None),
        runs.c.host == seen.host,
        runs.c.pid == seen.pid,
        runs.c.heartbeat_at == (seen.heartbeat_at and naive(seen.heartbeat_at)),
    )
    if not _set(connection, uuid, *same, claim=None):
        state = plan_row(connection, uuid).state
        text = f"plan {uuid} is {state}: who runs it was heard of, or has ended its claim"
        raise PlanConflict(uuid, state, text)


@database.translated
def follow(follower: Claimant, *, now: datetime) -> None:
    """Write the heartbeat of the process that lets all plans go on whose applier has died."""
    values = {**_values(follower, now), "service_host": ""}
    with database.writing() as connection:
        if not _set(connection, FOLLOWER, **values):
            connection.execute(sa.insert(runs).values(plan_uuid=FOLLOWER, **values))


@database.translated
def is_followed(now: datetime) -> bool:
    """Return whether a process lets plans go on whose applier has died."""
    with database.reading() as connection:
        row = run_row(connection, FOLLOWER)
    if row is None:
        return False
    if row.host == this_host():
        return not is_gone(_claimant_of(row))
    return bool(naive(now) - row.heartbeat_at < timedelta(seconds=_FOLLOWED_S))


def is_false_alarm(row: Any, host: str) -> bool:
    """Return whether Watcher has cancelled a plan because it takes the applier ``host`` for dead.

    ``row`` is the row of the plan. If that applier itself calls this, the cancel is a false alarm.
    """
    return bool(row.state == "CANCELLED" and row.status_message == stopped_plan(host))


@database.translated
def undo_false_alarm(uuid: str, token: str, host: str, now: datetime) -> None:
    """Make a plan ONGOING again that Watcher has cancelled because of a false alarm.

    Its cancelled actions are not changed: the run overwrites their states when it starts or ends
    them. Does nothing if there was no false alarm. Raises PlanConflict if the claim ``token`` has
    ended.
    """
    with database.writing() as connection:
        hold(connection, uuid, token, now)
        row = plan_row(connection, uuid, lock=True)
        if not is_false_alarm(row, host):
            return
        database.set_plan(connection, row, now, state="ONGOING", status_message=None)
    LOG.warning("Plan %s: Watcher takes applier %s for dead, which runs it: it goes on", uuid, host)


def restore_ended(connection: sa.Connection, row: Any, host: str, now: datetime) -> None:
    """Restore the states of actions that had ended when Watcher cancelled them by a false alarm.

    The states are those of their last attempts. ``row`` is the row of the plan.
    """
    mine = database.actions_of(row.id, ["CANCELLED"])
    cancelled = mine.where(ACTIONS.c.status_message == stopped_action(host))
    uuids = [action.uuid for action in connection.execute(cancelled)]
    if not uuids:
        return
    for uuid, tried in database.attempts_of(connection, row.uuid, uuids).items():
        for last in [attempt for attempt in tried if attempt.ended_at is not None][-1:]:
            state = action_word(ActionState(last.state))
            database.set_actions(connection, ACTIONS.c.uuid == uuid, now, state, last.message)
