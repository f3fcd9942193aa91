# SPDX-License-Identifier: Apache-2.0
"""Saves, finds and lists plans in a database, and changes them for operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from types import EllipsisType
from typing import Unpack

from applier.contracts import ActionOf, Claimant, HistoryEntry, Report
from applier.errors import ActionNotFound, DamagedRecord, PlanConflict, PlanNotFound
from applier.storage import (
    claims,
    columns,
    damaged_plan_removal,
    damaged_plans,
    event_writes,
    list_statements,
    queue_statements,
    references,
    rows,
    statements,
    transitions,
)
from applier.storage.action_statements import AGAIN, writes
from applier.storage.compiled import Row
from applier.storage.database import Database, plan_row
from applier.storage.event_writes import NewEvent
from applier.storage.refusals import Duplicate
from applier.storage.state_changes import (
    Change,
    MakeEvents,
    Move,
    action_row,
    note,
    writes_of,
)
from applier.storage.transactions import Transaction, Unexpected
from applier.store import PlanFilters, PlanSummary, given
from planner.errors import InvalidPlan, Mistake, short
from planner.model import ActionPlan
from planner.states import ActionState, PlanState, Who, check

#: How many actions are inserted by one call while a plan is saved.
AT_ONCE = 1000


class Plans:
    """The methods of the store that save, find, list and change plans."""

    _database: Database

    def save_plan(self, plan: ActionPlan, *, history: HistoryEntry | None = None) -> None:
        """See :meth:`applier.store.Store.save_plan`."""
        require_distinct(plan)
        head = rows.plan_row(plan, creator=history.who if history else None)

        def entered() -> list[NewEvent]:
            return [event_writes.of_plan(plan.state, plan.status_message)]

        def save() -> None:
            members = rows.action_rows(plan)
            try:
                with self._database.write() as transaction:
                    transaction.write(statements.INSERT_PLAN, head)
                    while some := tuple(islice(members, AT_ONCE)):
                        transaction.write(statements.INSERT_ACTION, *some)
                        transaction.write(statements.INSERT_STATE, *some)
                    note(transaction, plan.uuid, history, entered, at=_made_at(plan, history))
            except Duplicate:
                state = self._database.head(plan.uuid)["state"]
                text = f"plan {plan.uuid} is already in the record, {state}"
                raise PlanConflict(plan.uuid, state, text) from None

        self._database.tried(save, lost_too=False)

    def load_plan(self, uuid: str) -> ActionPlan:
        """See :meth:`applier.store.Store.load_plan`."""

        def load() -> ActionPlan:
            with self._database.read() as transaction:
                head = plan_row(transaction, uuid)
                members = transaction.read(statements.MEMBERS, {"plan_uuid": uuid})
            plan = rows.plan_of(head, members)
            columns.require_usable(plan)
            return plan

        try:
            return self._database.tried(load)
        except DamagedRecord as damaged:
            raise damaged_plans.explained(self._database, uuid, damaged) from damaged

    def find_plan(self, reference: str) -> str:
        """See :meth:`applier.store.Store.find_plan`."""

        def find() -> str:
            with self._database.read() as transaction:
                if reference == references.LAST:
                    found = transaction.read(statements.LAST)
                    if not found:
                        raise PlanNotFound(reference)
                    return str(found[0]["uuid"])
                pattern = statements.beginning(reference)
                asked = {"reference": reference, "beginning": pattern}
                found = transaction.read(statements.FIND, asked)
            return references.choose(reference, [(row["uuid"], row["name"]) for row in found])

        return self._database.tried(find)

    def list_plans(
        self, *, limit: int | None = None, **filters: Unpack[PlanFilters]
    ) -> list[PlanSummary]:
        """See :meth:`applier.store.Store.list_plans`."""

        wanted = given(filters)
        chosen = tuple(wanted)
        asked = {**wanted, "most": statements.ALL if limit is None else limit}

        def listed() -> list[PlanSummary]:
            with self._database.read() as transaction:
                heads = transaction.read_typed(list_statements.newest(chosen), asked)
                counts = transaction.read(list_statements.counts(chosen), asked)
            for head in heads:
                columns.require_claim(head)
            actions = rows.counts_of(counts)
            return [rows.summary(head, actions.get(head["uuid"], {})) for head in heads]

        try:
            return self._database.tried(listed)
        except DamagedRecord:
            one_by_one = partial(damaged_plans.listed, self._database, wanted, limit)
            return self._database.tried(one_by_one)

    def count_plans(self, *, most: int | None = None, **filters: Unpack[PlanFilters]) -> int:
        """See :meth:`applier.store.Store.count_plans`."""

        wanted = given(filters)
        asked = {**wanted, "most": statements.ALL if most is None else most}

        def count() -> int:
            with self._database.read() as transaction:
                found = transaction.read(list_statements.number(tuple(wanted)), asked)
                return int(found[0]["number"])

        return self._database.tried(count)

    def pending_plans(self) -> list[str]:
        """See :meth:`applier.store.Store.pending_plans`."""

        def read() -> list[str]:
            with self._database.read() as transaction:
                return [row["uuid"] for row in transaction.read(queue_statements.PENDING_PLANS)]

        return self._database.tried(read)

    def move_plan(
        self,
        uuid: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
        seen: Claimant | None = None,
        reports: Sequence[Report] = (),
        history: HistoryEntry | None = None,
    ) -> None:
        """See :meth:`applier.store.Store.move_plan`."""
        for report in reports:
            check("action", report.uuid, report.old, report.state, Who.ENGINE)

        def allowed(head: Row) -> None:
            claimant = rows.claimant_of(head)
            if seen is not None:
                claims.require_seen(uuid, head["state"], claimant, seen)
            check("plan", uuid, PlanState(head["state"]), new, Who.OPERATOR)
            if head["state"] == PlanState.DELETED:
                raise transitions.not_moved(uuid, new)
            claims.require_free(uuid, head["state"], claimant, seen)

        def members(transaction: Transaction) -> MakeEvents:
            try:
                transaction.write_all(writes_of(uuid, reports, now, self._database.at_once))
                left = _left_open(transaction, uuid, new, message)
                running = [report for report in left if report.given_up]
                transaction.write_all(writes_of(uuid, running, now, self._database.at_once))
            except Unexpected:
                text = f"plan {short(uuid)}: an action of it was changed by somebody else"
                raise PlanConflict(uuid, new, text) from None
            if new is PlanState.CANCELLED:
                change = {"plan_uuid": uuid, "new_message": rows.storable(message), "now": now}
                transaction.write(statements.CANCEL, change)
            return partial(event_writes.of_reports, uuid, [*reports, *left])

        with self._database.named(uuid, "move", new, message) as name:
            move = Move(uuid, new, now=now, message=message, name=name, history=history)
            self._database.tried(partial(move.make, self._database, allowed, members))

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

    def resume_plan(
        self,
        uuid: str,
        actions: Sequence[str],
        *,
        now: datetime,
        message: str | None = None,
        seen: Claimant | EllipsisType | None = ...,
        history: HistoryEntry | None = None,
    ) -> None:
        """See :meth:`applier.store.Store.resume_plan`."""
        wanted = tuple(dict.fromkeys(actions))

        def members(transaction: Transaction) -> MakeEvents:
            rows = transaction.read(statements.STATES, {"plan_uuid": uuid})
            found = {row["uuid"]: row["state"] for row in rows}
            for action in wanted:
                if action not in found:
                    raise ActionNotFound(uuid, action)
                state = ActionState(found[action])
                check("action", action, state, ActionState.PENDING, Who.OPERATOR)
            values = {"plan_uuid": uuid, "new_message": None}
            transaction.write_all(writes(AGAIN, wanted, values, at_once=self._database.at_once))
            again = [
                Report(uuid=action, old=ActionState(found[action]), state=ActionState.PENDING)
                for action in wanted
            ]
            return partial(event_writes.of_reports, uuid, again)

        def allowed(head: Row) -> None:
            claims.require_seen(uuid, head["state"], rows.claimant_of(head), seen)
            transitions.require_resumable(uuid, PlanState(head["state"]), wanted)

        with self._database.named(uuid, "resume", wanted, message) as name:
            new = PlanState.PENDING
            move = Move(uuid, new, now=now, message=message, name=name, history=history)
            self._database.tried(partial(move.make, self._database, allowed, members))

    def remove_damaged_plan(self, uuid: str, *, history: HistoryEntry | None = None) -> None:
        """See :meth:`applier.store.Store.remove_damaged_plan`."""
        self._database.tried(
            partial(damaged_plan_removal.remove_damaged, self._database, uuid, history)
        )

    def skip_action(
        self,
        plan: str,
        action: str,
        *,
        now: datetime,
        message: str,
        history: HistoryEntry | None = None,
    ) -> None:
        """See :meth:`applier.store.Store.skip_action`."""
        new = ActionState.SKIPPED
        with self._database.named(plan, "skip", action, message) as name:
            change = Change(plan, action, new, now=now, message=message, name=name, history=history)
            self._database.tried(partial(change.make, self._database, claims.WAITING_PLAN))

    def reword_skip(self, plan: str, action: str, *, message: str) -> None:
        """See :meth:`applier.store.Store.reword_skip`."""
        where = {"plan_uuid": plan, "action_uuid": action}

        def reword() -> None:
            with self._database.write() as transaction:
                change = {**where, "new_message": rows.storable(message)}
                if not transaction.write(statements.REWORD_SKIP, change):
                    state = action_row(transaction, plan, action)["state"]
                    text = f"action {short(action)} is {state}: only a skip has such a message"
                    raise PlanConflict(plan, state, text)

        self._database.tried(reword)

    def settle_action(
        self,
        plan: str,
        action: str,
        new: ActionState,
        *,
        now: datetime,
        message: str,
        undoes: ActionOf | None = None,
        history: HistoryEntry | None = None,
    ) -> None:
        """See :meth:`applier.store.Store.settle_action`."""
        transitions.require_settling(action, new)
        with self._database.named(plan, "settle", action, new, message) as name:
            change = Change(plan, action, new, now, message, name, history, undoes)
            self._database.tried(partial(change.make, self._database, claims.UNCLAIMED_PLAN))


def _made_at(plan: ActionPlan, history: HistoryEntry | None) -> datetime:
    """Return the time of saving a plan: of its history entry, else of its creation, else now."""
    return history.at if history else plan.created_at or datetime.now(UTC)


def _left_open(
    transaction: Transaction, uuid: str, new: PlanState, message: str | None
) -> list[Report]:
    """Return a report for each action of a plan that the state ``new`` of the plan ends.

    Those of actions that were running are ``given_up``: they may still be at work.
    """
    left_open = transitions.LEFT_OPEN.get(new)
    if left_open is None:
        return []
    found = transaction.read(statements.STATES, {"plan_uuid": uuid})
    states = {row["uuid"]: ActionState(row["state"]) for row in found}
    return [
        Report(
            uuid=action,
            old=old,
            state=left_open[old],
            message=message,
            given_up=old is ActionState.ONGOING,
        )
        for action, old in states.items()
        if old in left_open
    ]


def require_distinct(plan: ActionPlan) -> None:
    """Raise InvalidPlan if two actions of a plan have the same uuid, which is their key."""
    counts = Counter(action.uuid for action in plan.actions)
    if len(counts) != len(plan.actions):
        twice = (uuid for uuid, number in counts.items() if number > 1)
        raise InvalidPlan(
            Mistake(f"two actions of plan {plan.uuid} have the uuid {u}") for u in twice
        )
