# SPDX-License-Identifier: Apache-2.0
"""Brings removed plans back, and deletes plans for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.contracts import HistoryEntry
from applier.errors import PlanConflict
from applier.storage import outliving_events, rows, statements, transitions
from applier.storage.columns import Moment
from applier.storage.compiled import Deferred, Row, words
from applier.storage.damaged_plan_removal import ALL_OF_A_PLAN
from applier.storage.database import Database
from applier.storage.state_changes import Move, write_history
from applier.storage.tables import action_states, plans
from applier.store.retention import NO_PLAN, EndedPlan
from planner.errors import short
from planner.states import ENDED_PLAN, PlanState, Who, check

_LIST = Deferred(
    lambda: (
        sa.select(plans.c.number, plans.c.uuid, _members().label("actions"))
        .where(_ended(), plans.c.number > bindparam("after"))
        .order_by(plans.c.number)
        .limit(bindparam("most"))
    )
)
#: Lock the row of a plan that ended before a time. Of two transactions that purge it at once, one
#: finds the row.
_HOLD = Deferred(
    lambda: (
        sa.update(plans)
        .where(plans.c.uuid == bindparam("plan_uuid"), _ended())
        .values(last_write=bindparam("write"))
    )
)


def _ended() -> sa.ColumnElement[bool]:
    """Return the condition that an unclaimed plan ended before the time ``before``.

    A plan without times counts as ended before all others.
    """
    long_ago = sa.literal(datetime(1000, 1, 1, tzinfo=UTC), Moment)
    ended_at = sa.func.coalesce(plans.c.updated_at, plans.c.created_at, long_ago, type_=Moment)
    is_before = bindparam("before", type_=Moment) > ended_at
    return plans.c.state.in_(words(sorted(ENDED_PLAN))) & plans.c.claim.is_(None) & is_before


def _members() -> sa.ScalarSelect[int]:
    """Select the number of actions of a plan."""
    of_plan = action_states.c.plan == plans.c.uuid
    found = sa.select(sa.func.count()).select_from(action_states).where(of_plan)
    return found.scalar_subquery()


class Retention:
    """The methods of the store that bring plans back and delete them for good."""

    _database: Database

    def undelete_plan(
        self, uuid: str, *, now: datetime, history: HistoryEntry | None = None
    ) -> PlanState:
        """See :meth:`applier.store.retention.RetentionStore.undelete_plan`."""

        def undelete(name: str) -> PlanState:
            head = self._database.head(uuid)
            if head["last_write"] == name:
                return PlanState(head["state"])
            new = _state_before(head)
            move = Move(uuid, new, now=now, message=None, name=name, history=history)
            move.make(self._database, partial(_require_before, new))
            return new

        with self._database.named(uuid, "undelete") as name:
            return self._database.tried(partial(undelete, name))

    def ended_plans(
        self, before: datetime, *, after: int = 0, limit: int | None = None
    ) -> list[EndedPlan]:
        """See :meth:`applier.store.retention.RetentionStore.ended_plans`."""
        asked = {"before": before, "after": after}
        asked["most"] = statements.ALL if limit is None else limit

        def read() -> list[EndedPlan]:
            with self._database.read() as transaction:
                return [EndedPlan(**row) for row in transaction.read(_LIST, asked)]

        return self._database.tried(read)

    def purge_plans(
        self, uuids: Sequence[str], before: datetime, *, history: HistoryEntry | None = None
    ) -> list[str]:
        """See :meth:`applier.store.retention.RetentionStore.purge_plans`."""

        # The uuids of deleted plans. If the answer to the commit was lost, the next try does not
        # find these plans, and returns them all the same.
        mine: set[str] = set()

        def purge() -> list[str]:
            gone, held = [], []
            with self._database.write() as transaction:
                for uuid in uuids:
                    where = {"plan_uuid": uuid, "before": before, "write": NO_PLAN}
                    if transaction.write(_HOLD, where):
                        outliving_events.complete_events(transaction, uuid)
                        held.append({"plan_uuid": uuid})
                        gone.append(uuid)
                        mine.add(uuid)
                    elif uuid in mine and not transaction.read(
                        statements.PLAN, {"plan_uuid": uuid}
                    ):
                        gone.append(uuid)
                if held:
                    for statement in ALL_OF_A_PLAN:
                        transaction.write(statement, *held)
                    if history is not None:
                        write_history(transaction, NO_PLAN, history)
            return gone

        return self._database.tried(purge)


def _require_before(new: PlanState, head: Row) -> None:
    """Raise PlanConflict unless ``new`` is the state of a removed plan before its removal."""
    if _state_before(head) is not new:
        raise transitions.changed_meanwhile(head["uuid"], PlanState.DELETED, head["state"])


@rows.reading
def _state_before(head: Row) -> PlanState:
    """Return the state of a plan before it was removed; raises PlanConflict."""
    uuid, state = head["uuid"], PlanState(head["state"])
    if state is not PlanState.DELETED:
        raise PlanConflict(uuid, state, f"plan {short(uuid)} is {state}: it is not deleted")
    before = PlanState(head["deleted_from"])
    check("plan", uuid, state, before, Who.OPERATOR)
    return before
