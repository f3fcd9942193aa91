# SPDX-License-Identifier: Apache-2.0
"""Lets plans wait for a time before they start, in a database."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from applier.contracts import HistoryEntry
from applier.storage import claims, rows
from applier.storage.changes import Move
from applier.storage.compiled import Row
from applier.storage.database import Database
from planner.states import PlanState, Who, check


class StartTimes:
    """The method of the store that says when a plan starts."""

    _database: Database

    def start_plan(
        self,
        uuid: str,
        start_at: datetime | None,
        *,
        now: datetime,
        history: HistoryEntry | None = None,
    ) -> None:
        """See :meth:`applier.store.start_times.StartTimeStore.start_plan`."""
        new = PlanState.PENDING

        def allowed(head: Row) -> None:
            if head["state"] != new or head["start_at"] == start_at:
                check("plan", uuid, PlanState(head["state"]), new, Who.OPERATOR)
            claims.require_free(uuid, head["state"], rows.claimant_of(head), None)

        with self._database.named(uuid, "start", start_at) as name:
            move = Move(
                uuid, new, now=now, message=None, name=name, history=history, start_at=start_at
            )
            self._database.tried(partial(move.make, self._database, allowed))
