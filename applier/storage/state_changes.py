# SPDX-License-Identifier: Apache-2.0
"""Changes the state of a plan or of an action once, even if the transaction is repeated.

The unique name of a write (see :meth:`applier.storage.database.Database.named`) is stored in the
plan's row in the same transaction, so that a repeated write is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from applier.contracts import ActionOf, Claimant, HistoryEntry, Report
from applier.errors import ActionNotFound, PlanChanged
from applier.storage import event_rows, rows, statements, transitions
from applier.storage.database import Database, plan_row
from applier.storage.dialects import Row, UnreadableValue
from applier.storage.event_rows import Entered, Fact
from applier.storage.statements import (
    AGAIN,
    DOUBT,
    DROP_ATTEMPT,
    END,
    KEEP_ATTEMPT,
    REOPEN,
    START,
    UNDONE,
    writes,
)
from applier.storage.transactions import Transaction, Write
from applier.storage.worker_jobs import job_writes
from applier.store.entries import NO_PLAN
from applier.wording import run_options
from planner.plan.states import ActionState, PlanState, StateReason, Who, check

#: For how long the answers to changes of no plan are kept.
KEPT = timedelta(days=7)
#: A plan that enters one of these states has no jobs at workers any more.
_OVER = frozenset({PlanState.SUCCEEDED, PlanState.FAILED, PlanState.CANCELLED})
#: Returns the fields of a report that are written, without its action.
_written = attrgetter(
    "old", "state", "outcome", "state_reason", "message", "output", "given_up", "left_in"
)


class Move(NamedTuple):
    """A change of the state of a plan, with its actions, queues and reservations.

    It is one transaction.
    """

    plan: str
    new: PlanState
    now: datetime
    message: str | None
    #: The number of requests that the plan must have; None for any.
    read: int | None = None
    history: HistoryEntry | None = None
    #: When the plan starts at the earliest, if it becomes PENDING.
    start_at: datetime | None = None

    def make(
        self,
        database: Database,
        allowed: Callable[[Row], None],
        members: Callable[[Transaction], Sequence[Report]] = lambda _: (),
        key: object = None,
    ) -> None:
        """Make the change once, also if it has to be tried again.

        ``allowed`` checks the row of the plan and raises an error to refuse the change.
        ``members`` changes the actions in the transaction of the change, and returns what has
        become of them. ``key`` tells the change from others to the same state. Raises PlanConflict
        if somebody else has changed the plan after its row was read, PlanNotFound.
        """
        with database.named(self.plan, self.new, self.message, self.start_at, key) as name:
            database.tried(lambda: self.write(database, name, allowed, members))

    def write(
        self,
        database: Database,
        name: str,
        allowed: Callable[[Row], None],
        members: Callable[[Transaction], Sequence[Report]] = lambda _: (),
    ) -> None:
        """Make the change under a name, unless an earlier try of that name has made it."""
        head = database.head(self.plan)
        if head["last_write"] == name:
            return
        allowed(head)
        held = {"plan_uuid": self.plan, "old_state": head["state"], "held": head["claim"] or ""}
        with database.write() as transaction:
            moved = transaction.write(statements.MOVE, {**held, **self._values(head, name)})
            if moved:
                reports = members(transaction)
                self._queue(transaction)
                entered = Entered(self.new, self.message)
                note(transaction, self.plan, self.history, *reports, entered, at=self.now)
        if not moved:
            found = database.head(self.plan)
            if found["last_write"] != name:
                allowed(found)
                raise transitions.changed_meanwhile(self.plan, head["state"], found["state"])

    def _values(self, head: Row, name: str) -> rows.Changes:
        is_deleted = self.new is PlanState.DELETED
        return {
            "new_state": str(self.new),
            "deleted_from": head["state"] if is_deleted else None,
            "new_claim": None if transitions.ends_claim(self.new) else head["claim"],
            "new_message": rows.storable(self.message),
            "now": self.now,
            "start_at": self.start_at,
            "write": name,
            "read": self.read,
        }

    def _queue(self, transaction: Transaction) -> None:
        row = {"plan_uuid": self.plan}
        if transitions.ends_claim(self.new):
            give_back(transaction, self.plan)
        if self.new in _OVER:
            transaction.write(statements.REMOVE_JOBS, row)
        if self.new is PlanState.PENDING:
            transaction.write(statements.QUEUE, {**row, "new_number": take_turn(transaction)})


class Change(NamedTuple):
    """A change of the state of an action by an operator, in a plan that nobody runs."""

    plan: str
    action: str
    new: ActionState
    now: datetime
    message: str
    history: HistoryEntry | None = None
    #: The action of another plan that the action reverts.
    undoes: ActionOf | None = None

    def make(self, database: Database, states: tuple[PlanState, ...]) -> None:
        """Make the change once, also if it has to be tried again.

        Raises PlanConflict if the plan is in none of ``states``, InvalidTransition, PlanNotFound,
        ActionNotFound.
        """
        with database.named(self.plan, self.action, self.new, self.message) as name:
            database.tried(lambda: self._write(database, name, states))

    def _write(self, database: Database, name: str, states: tuple[PlanState, ...]) -> None:
        hold = {"plan_uuid": self.plan, "now": self.now, "write": name}
        with database.write() as transaction:
            held = transaction.write(statements.HOLD_STATE[states], hold)
            if held:
                report = self._settle(transaction, database.at_once)
                note(transaction, self.plan, self.history, report, at=self.now)
                # After its event, which takes the state before from the row.
                transaction.write_all(_undone(self.plan, [report], database.at_once))
        if not held:
            head = database.head(self.plan)
            if head["last_write"] != name:
                raise transitions.not_waiting(self.plan, head["state"], states)

    def _settle(self, transaction: Transaction, at_once: int) -> Report:
        old = ActionState(action_row(transaction, self.plan, self.action)["state"])
        check("action", self.action, old, self.new, Who.OPERATOR)
        outcome = transitions.SETTLED.get(self.new)
        report = Report(
            uuid=self.action,
            old=old,
            state=self.new,
            outcome=outcome,
            state_reason=StateReason.OPERATOR,
            message=self.message,
            undoes=self.undoes,
        )
        values = {"plan_uuid": self.plan, "now": self.now, **rows.report_values(report)}
        transaction.write_all(writes(END, [self.action], values, at_once=at_once))
        return report


def writes_of(plan: str, reports: Sequence[Report], now: datetime, at_once: int) -> Iterator[Write]:
    """Yield the writes for reports, in their order; adjacent reports of one kind share a write.

    Each write of a new state requires that its actions are in the old state of their reports.
    """
    for _, group in groupby(reports, _written):
        alike = list(group)
        first, uuids = alike[0], [report.uuid for report in alike]
        values = {"plan_uuid": plan, "now": now, **rows.report_values(first)}
        if first.old is ActionState.UNKNOWN and first.state is ActionState.ONGOING:
            yield from writes(REOPEN, uuids, values, at_once=at_once)
            yield from writes(DROP_ATTEMPT, uuids, values, at_once=at_once, checked=False)
            continue
        starts = first.state is ActionState.ONGOING
        yield from writes(START if starts else END, uuids, values, at_once=at_once)
        if first.old is ActionState.ONGOING:
            yield from writes(KEEP_ATTEMPT, uuids, values, at_once=at_once)
        if first.state is ActionState.UNKNOWN:
            yield Write(DOUBT, {"plan_uuid": plan}, None)
        if first.state is ActionState.PENDING:
            yield from writes(AGAIN, uuids, values, at_once=at_once)
    for report in reports:
        if report.job is not None:
            yield from job_writes(plan, report, report.job)
    yield from _undone(plan, reports, at_once)


def _undone(plan: str, reports: Sequence[Report], at_once: int) -> Iterator[Write]:
    """Yield the writes for the actions of other plans that the actions of reports have reverted."""
    for report in reports:
        if report.undoes and (undone := transitions.undone(plan, report)):
            values = {"plan_uuid": report.undoes.plan, **rows.report_values(undone)}
            yield from writes(UNDONE, [undone.uuid], values, at_once=at_once, checked=False)


def take_turn(transaction: Transaction) -> int:
    """Return the next number for the queues, which is larger than all that were committed.

    Other transactions that take a number wait until this one ends.
    """
    transaction.write(statements.TAKE_TURN, {})
    found = transaction.read(statements.TURN)
    if not found:
        raise UnreadableValue("actionplan_turn has no row")
    number: int = found[0]["number"]
    return number


def give_back(transaction: Transaction, plan: str) -> None:
    """Delete the reservations of a plan, and its place in their queue."""
    transaction.write(statements.GIVE_BACK, {"plan_uuid": plan})
    transaction.write(statements.QUEUE_RESERVED, {"plan_uuid": plan, "new_number": None})


def action_row(transaction: Transaction, plan: str, action: str) -> Row:
    """Read state, start and attempts of an action; raises PlanNotFound, ActionNotFound."""
    where = {"plan_uuid": plan, "action_uuid": action}
    found = transaction.read(statements.ACTION, where)
    if not found:
        plan_row(transaction, plan)
        raise ActionNotFound(plan, action)
    return found[0]


def note(
    transaction: Transaction,
    plan: str,
    history: HistoryEntry | None,
    *facts: Fact,
    at: datetime,
) -> None:
    """Write a history entry and events in the transaction of the change that they describe.

    The events of the entry and of the facts are written only if anybody subscribes. Call this at
    the end of a transaction, because other writers of events wait until it commits.
    """
    if history is not None:
        write_history(transaction, plan, history)
    if is_subscribed(transaction, at):
        asked = () if history is None else (history,)
        transaction.write_all(event_rows.event_writes(plan, [*asked, *facts], at))


def write_history(transaction: Transaction, plan: str, history: HistoryEntry) -> None:
    """Write a history entry in the transaction of its change; ``plan`` may be NO_PLAN.

    If the change is to happen once and there was one with its key, the statement violates a
    constraint, and the transaction is rolled back. Raises PlanChanged if there is a later entry
    than the change is to be ``after``: writers of a plan have changed its row before, and wait for
    each other.
    """
    asked = {"plan_uuid": plan, "after": history.after}
    if history.after is not None and transaction.read(statements.LATER, asked):
        raise PlanChanged(plan, plan_row(transaction, plan)["state"])
    transaction.write(statements.INSERT_HISTORY, history_row(plan, history))
    if history.once is not None:
        row = {"plan": plan, "request_id": history.request_id, "at": history.at, "answer": None}
        insert_answer(transaction, {**history.once._asdict(), **row})


def insert_answer(transaction: Transaction, row: rows.Changes) -> None:
    """Insert the row of a change that is to happen once.

    Rows of changes of no plan, which are deleted with none, are deleted when they are old.
    """
    old = {"of_none": NO_PLAN, "before": row["at"] - KEPT}
    if row["plan"] == NO_PLAN and transaction.read(statements.OLD_ANSWERS, old):
        transaction.write(statements.FORGET_ANSWERS, old)
    transaction.write(statements.INSERT_ANSWER, row)


def is_subscribed(transaction: Transaction, at: datetime) -> bool:
    """Return whether anybody subscribes to events at a time."""
    return bool(transaction.read(statements.SUBSCRIBED, {"now": at}))


def history_row(plan: str, history: HistoryEntry) -> dict[str, Any]:
    """Return the row of a history entry; ``plan`` is NO_PLAN for an entry of no single plan."""
    row: dict[str, Any] = {"plan": plan, "action": history.action, "at": history.at}
    for name in ("verb", "who", "project", "address", "request_id"):
        row[name] = rows.line(getattr(history, name))
    row["why"] = rows.storable(history.why)
    return row


def run_by(claimant: Claimant, at: datetime) -> HistoryEntry:
    """Return the history entry for a claim: who began to run the plan, and in which process."""
    with_options = f": {run_options(claimant.options)}" if claimant.options else ""
    reason = f"{claimant.options.reason}; " if claimant.options and claimant.options.reason else ""
    why = f"{reason}process {claimant.pid} on {claimant.host} runs it{with_options}"
    return HistoryEntry(verb="apply", who=claimant.user, why=why, at=at)
