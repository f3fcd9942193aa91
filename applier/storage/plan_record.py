"""Plans in a database: kept, found, and changed by operators."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from types import EllipsisType

import sqlalchemy as sa
from oslo_db.exception import DBDuplicateEntry  # type: ignore[import-untyped]

from applier.contracts import Claimant
from applier.errors import ActionNotFound, PlanNotFound
from applier.storage import rows, rules
from applier.storage import statements as said
from applier.storage.changes import Change, Move
from applier.storage.database import Database, plan_row
from applier.storage.tables import actions, plans
from applier.store import PlanSummary
from planner.model import ActionPlan
from planner.states import ActionState, PlanState, Who, check


class PlanRecord:
    """The half of the store that is about plans that nobody runs, or not for longer."""

    _database: Database

    def save_plan(self, plan: ActionPlan) -> None:
        """See :meth:`applier.store.Store.save_plan`."""
        rules.require_distinct(plan)
        head, members = rows.plan_row(plan), list(rows.action_rows(plan))

        def save() -> None:
            try:
                with self._database.write() as database:
                    database.execute(sa.insert(plans), head)
                    if members:
                        database.execute(sa.insert(actions), members)
            except DBDuplicateEntry:
                state = self._database.head(plan.uuid)["state"]
                raise rules.already_saved(plan.uuid, state) from None

        self._database.tried(save, lost_too=False)

    def load_plan(self, uuid: str) -> ActionPlan:
        """See :meth:`applier.store.Store.load_plan`."""

        def load() -> ActionPlan:
            with self._database.read() as database:
                head = plan_row(database, uuid)
                members = database.execute(said.ACTIONS, {"plan_uuid": uuid}).mappings().all()
            return rows.plan_of(head, members)

        return self._database.tried(load)

    def find_plan(self, reference: str) -> str:
        """See :meth:`applier.store.Store.find_plan`."""

        def find() -> str:
            with self._database.read() as database:
                if reference != rules.LAST:
                    known = database.execute(said.fitting(reference)).all()
                    return rules.choose(reference, [(uuid, name) for uuid, name in known])
                last: str | None = database.execute(said.LAST).scalar()
            if last is None:
                raise PlanNotFound(reference)
            return last

        return self._database.tried(find)

    def list_plans(
        self, *, state: PlanState | None = None, limit: int | None = None
    ) -> list[PlanSummary]:
        """See :meth:`applier.store.Store.list_plans`."""

        def listed() -> list[PlanSummary]:
            with self._database.read() as database:
                heads = database.execute(said.listed(state, limit)).mappings().all()
                first = heads[-1]["number"] if heads else 0
                counts = rows.counts_of(database.execute(said.counted(state, first)).all())
            return [rows.summary(head, counts.get(head["uuid"], {})) for head in heads]

        return self._database.tried(listed)

    def count_plans(self, *, state: PlanState | None = None) -> int:
        """See :meth:`applier.store.Store.count_plans`."""

        def count() -> int:
            with self._database.read() as database:
                return database.execute(said.number_of_plans(state)).scalar_one()

        return self._database.tried(count)

    def pending_plans(self) -> list[str]:
        """See :meth:`applier.store.Store.pending_plans`."""

        def read() -> list[str]:
            with self._database.read() as database:
                return list(database.execute(said.PENDING_PLANS).scalars())

        return self._database.tried(read)

    def move_plan(
        self,
        uuid: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
        seen: Claimant | None = None,
    ) -> None:
        """See :meth:`applier.store.Store.move_plan`."""

        def allowed(head: rows.Row) -> None:
            check("plan", uuid, PlanState(head["state"]), new, Who.OPERATOR)
            rules.require_free(uuid, head["state"], rows.claimant_of(head), seen)

        def members(database: sa.Connection) -> None:
            change = {"plan_uuid": uuid, "new_message": rules.kept(message), "now": now}
            for old, then in rules.LEFT_OPEN.get(new, {}).items():
                states = {"old_state": str(old), "new_state": str(then)}
                database.execute(said.CANCEL, {**change, **states})

        with self._database.named(uuid, "move", new, message) as name:
            move = Move(uuid, new, now=now, message=message, name=name)
            self._database.tried(partial(move.make, self._database, allowed, members))

    def resume_plan(
        self,
        uuid: str,
        actions: Sequence[str],
        *,
        now: datetime,
        message: str | None = None,
        seen: Claimant | EllipsisType | None = ...,
    ) -> None:
        """See :meth:`applier.store.Store.resume_plan`."""
        wanted = tuple(dict.fromkeys(actions))

        def members(database: sa.Connection) -> None:
            found = dict(database.execute(said.STATES, {"plan_uuid": uuid}).all())
            for action in wanted:
                if action not in found:
                    raise ActionNotFound(uuid, action)
                state = ActionState(found[action])
                check("action", action, state, ActionState.PENDING, Who.OPERATOR)
            if wanted:
                row = {"plan_uuid": uuid, "new_message": None}
                database.execute(said.AGAIN, [{**row, "action_uuid": a} for a in wanted])

        def allowed(head: rows.Row) -> None:
            rules.require_resumable(uuid, PlanState(head["state"]), wanted)
            rules.require_seen(uuid, head["state"], rows.claimant_of(head), seen)

        with self._database.named(uuid, "resume", wanted, message) as name:
            move = Move(uuid, PlanState.PENDING, now=now, message=message, name=name)
            self._database.tried(partial(move.make, self._database, allowed, members))

    def skip_action(self, plan: str, action: str, *, now: datetime, message: str) -> None:
        """See :meth:`applier.store.Store.skip_action`."""
        with self._database.named(plan, "skip", action, message) as name:
            change = Change(plan, action, ActionState.SKIPPED, now=now, message=message, name=name)
            self._database.tried(partial(change.make, self._database, rules.WAITING_PLAN))

    def settle_action(
        self, plan: str, action: str, new: ActionState, *, now: datetime, message: str
    ) -> None:
        """See :meth:`applier.store.Store.settle_action`."""
        rules.require_settling(action, new)
        with self._database.named(plan, "settle", action, new, message) as name:
            change = Change(plan, action, new, now=now, message=message, name=name)
            self._database.tried(partial(change.make, self._database, rules.UNCLAIMED_PLAN))
