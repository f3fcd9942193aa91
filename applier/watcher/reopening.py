# SPDX-License-Identifier: Apache-2.0
"""Makes plans PENDING again whose applier has died, or that ended without doing all of their work.

The next run verifies actions that were running. Actions that SUCCEEDED or were SKIPPED never run
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from watcher.db.sqlalchemy import models

from applier.contracts import Claimant
from applier.errors import PlanConflict
from applier.watcher import claims, database, deadly, unclaimed
from applier.watcher.states import DOUBT
from applier.watcher.tables import attempts, runs

PLANS, ACTIONS = claims.PLANS, models.Action.__table__
#: The states of plans that can become PENDING; from the last two only if their applier has died.
RESUMABLE = ("PENDING", "CANCELLED", "FAILED", "ONGOING", "CANCELLING")


@database.translated
def reopen(uuid: str, seen: Claimant | None, *, not_begun: bool = False) -> None:
    """Make a plan PENDING; ``seen`` is its claimant, which has died, or None without a claimant.

    ``not_begun`` is true if an operator states that no action had begun (see
    :mod:`applier.watcher.unclaimed`). Raises PlanNotFound, and PlanConflict if the plan cannot
    become PENDING or if another process changed it meanwhile.
    """
    now = datetime.now(UTC)
    with database.writing() as connection:
        row = claims.plan_row(connection, uuid, lock=True)
        run = claims.run_row(connection, uuid)
        if seen is not None:
            claims.end(connection, uuid, seen)
            deadly.fail_repeatedly_interrupted(connection, ACTIONS, uuid, now)
        why = _refusal(row, run, seen) or (
            unclaimed.refusal(connection, row, run, not_begun=not_begun) if seen is None else None
        )
        if why:
            raise PlanConflict(uuid, row.state, f"plan {uuid} is {row.state}: {why}")
        for uuids, state, message in _resets(connection, row):
            mine = sa.update(ACTIONS).where(ACTIONS.c.uuid.in_(uuids))
            values = {"state": state, "status_message": message, "updated_at": claims.naive(now)}
            connection.execute(mine.values(**values))
        same = sa.update(PLANS).where(PLANS.c.id == row.id, PLANS.c.state == row.state)
        values = {"state": "PENDING", "status_message": None, "updated_at": claims.naive(now)}
        if connection.execute(same.values(hostname=None, **values)).rowcount != 1:
            text = f"plan {uuid} was {row.state}: somebody else changed it meanwhile"
            raise PlanConflict(uuid, row.state, text)


def _refusal(row: Any, run: Any, seen: Claimant | None) -> str | None:
    """Return why a plan cannot become PENDING; None if its state and its claim allow it."""
    if seen is None and run is not None and run.claim is not None:
        return f"process {run.pid} on {run.host} runs it"
    if row.state not in RESUMABLE:
        return f"accepted are {', '.join(RESUMABLE)}"
    return None


def _resets(connection: sa.Connection, row: Any) -> Sequence[tuple[Sequence[str], str, str | None]]:
    """Return three triples: uuids of actions, and the state and the message that they get.

    Actions with an open attempt become ONGOING: the next run verifies them. Those whose last
    attempt is UNKNOWN become FAILED, in doubt. The others that did not do their work become
    PENDING. If the applier has died, FAILED actions are left out, because nobody decided to retry
    them.
    """
    begun = _last_attempts(connection, row.uuid)
    columns = (ACTIONS.c.uuid, ACTIONS.c.state)
    mine = sa.select(*columns).where(ACTIONS.c.action_plan_id == row.id)
    found = connection.execute(mine.where(ACTIONS.c.deleted_at.is_(None))).all()
    again = ("CANCELLED",) if row.state in ("ONGOING", "CANCELLING") else ("CANCELLED", "FAILED")
    verified, doubtful, reset = [], [], []
    for action in found:
        attempt = begun.get(action.uuid)
        if action.state not in (*again, "ONGOING", "CANCELLING"):
            continue
        if attempt is not None and attempt.ended_at is None:
            verified.append(action.uuid)
        elif attempt is not None and attempt.state == "UNKNOWN":
            doubtful.append(action.uuid)
        else:
            reset.append(action.uuid)
    return (
        (verified, "ONGOING", None),
        (doubtful, "FAILED", DOUBT),
        (reset, "PENDING", None),
    )


def _last_attempts(connection: sa.Connection, plan: str) -> Mapping[str, Any]:
    rows = sa.select(attempts).where(attempts.c.plan_uuid == plan).order_by(attempts.c.number)
    return {row.action_uuid: row for row in connection.execute(rows)}


@database.translated
def claimed() -> dict[str, Claimant]:
    """Return the claimants of all claimed plans, by plan; also those that have died."""
    with database.reading() as connection:
        rows = connection.execute(sa.select(runs).where(runs.c.claim.is_not(None)))
        return {row.plan_uuid: claims.claimant_of(row) for row in rows}


@database.translated
def waiting(also: str | None = None) -> list[str]:
    """Return the uuids of PENDING plans without a claimant that this engine has run before.

    The plan ``also`` is included if it is PENDING without a claimant, even if it never ran here.
    """
    with database.reading() as connection:
        pending = sa.select(PLANS.c.uuid).where(
            PLANS.c.state == "PENDING", PLANS.c.deleted_at.is_(None)
        )
        uuids = list(connection.execute(pending).scalars())
        known = sa.select(runs.c.plan_uuid, runs.c.claim).where(runs.c.plan_uuid.in_(uuids))
        claim = {row.plan_uuid: row.claim for row in connection.execute(known)}
    ours = claim.keys() | {also}
    return [uuid for uuid in uuids if uuid in ours and claim.get(uuid) is None]
