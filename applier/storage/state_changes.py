# SPDX-License-Identifier: Apache-2.0
"""Changes the state of a plan or an action; a repeated transaction does not change it again.

The unique name of a write (see :meth:`applier.storage.database.Database.named`) is stored in the
plan's row in the same transaction, so that a repeated write is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from applier.contracts import Claimant, HistoryEntry, Report
from applier.errors import ActionNotFound, PlanChanged
from applier.storage import event_rows, rows, state_refusals, statements
from applier.storage.database import Database, plan_row
from applier.storage.event_rows import Entered, Fact
from applier.storage.statements import Row, UnreadableValue, Write, writes
from applier.storage.transactions import Transaction
from applier.storage.worker_jobs import job_writes
from applier.store.entries import NO_PLAN
from applier.wording import run_options
from planner.plan.states import ActionState, PlanState

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

    It is one transaction. ``decide`` gets the row of the plan, which no other writer changes
    meanwhile, and returns the new state, or raises an error to refuse the change. ``members``
    changes the actions in that transaction, and returns what has become of them.
    """

    plan: str
    now: datetime
    decide: Callable[[Row], PlanState]
    message: str | None = None
    members: Callable[[Transaction], Sequence[Report]] = lambda _: ()
    history: HistoryEntry | None = None
    #: When the plan starts at the earliest, if it becomes PENDING.
    start_at: datetime | None = None

    def make(self, database: Database, *key: object) -> PlanState:
        """Make the change once, also if it has to be tried again; return the new state.

        ``key`` tells the change from others of the plan. Raises PlanNotFound.
        """
        with database.named(self.plan, self.message, self.start_at, *key) as name:
            return database.writing(lambda transaction: self._write(transaction, name))

    def _write(self, transaction: Transaction, name: str) -> PlanState:
        is_new = transaction.write(statements.HOLD, {"plan_uuid": self.plan, "write": name})
        head = plan_row(transaction, self.plan)
        if not is_new:  # an earlier try has made it
            return PlanState(head["state"])
        new = self.decide(head)
        change = {
            "plan_uuid": self.plan,
            "new_state": str(new),
            "deleted_from": head["state"] if new is PlanState.DELETED else None,
            "new_claim": None if state_refusals.ends_claim(new) else head["claim"],
            "new_message": rows.storable(self.message),
            "now": self.now,
            "start_at": self.start_at,
        }
        transaction.write(statements.MOVE, change)
        reports = self.members(transaction)
        self._queue(transaction, new)
        entered = Entered(new, self.message)
        note(transaction, self.plan, self.history, *reports, entered, at=self.now)
        return new

    def _queue(self, transaction: Transaction, new: PlanState) -> None:
        row = {"plan_uuid": self.plan}
        if state_refusals.ends_claim(new):
            give_back(transaction, self.plan)
        if new in _OVER:
            transaction.write(statements.REMOVE_JOBS, row)
        if new is PlanState.PENDING:
            transaction.write(statements.QUEUE, {**row, "new_number": take_turn(transaction)})


def change_waiting(
    database: Database,
    plan: str,
    change: Callable[[Transaction], None],
    *key: object,
    states: Collection[PlanState],
    now: datetime,
) -> None:
    """Call ``change`` in a transaction, once, also if it has to be tried again.

    ``key`` tells the change from others of the plan. Raises PlanConflict for a plan that is in none
    of ``states``, PlanNotFound.
    """

    def write(transaction: Transaction) -> None:
        if not transaction.write(statements.HOLD, {"plan_uuid": plan, "write": name}):
            plan_row(transaction, plan)
            return  # an earlier try has made it
        state_refusals.require_waiting(plan, plan_row(transaction, plan)["state"], states)
        transaction.write(statements.TOUCH, {"plan_uuid": plan, "now": now})
        change(transaction)

    with database.named(plan, *key) as name:
        database.writing(write)


def writes_of(plan: str, reports: Sequence[Report], now: datetime, at_once: int) -> Iterator[Write]:
    """Yield the writes for reports, in their order; adjacent reports of one kind share a write.

    Each write of a new state requires that its actions are in the old state of their reports.
    """
    for _, group in groupby(reports, _written):
        alike = list(group)
        first, uuids = alike[0], [report.uuid for report in alike]
        values = {"plan_uuid": plan, "now": now, **rows.report_values(first)}
        if first.old is ActionState.UNKNOWN and first.state is ActionState.ONGOING:
            yield from writes(statements.REOPEN, uuids, values, at_once=at_once)
            yield from writes(
                statements.DROP_ATTEMPT, uuids, values, at_once=at_once, checked=False
            )
            continue
        starts = first.state is ActionState.ONGOING
        yield from writes(
            statements.START if starts else statements.END, uuids, values, at_once=at_once
        )
        if first.old is ActionState.ONGOING:
            yield from writes(statements.KEEP_ATTEMPT, uuids, values, at_once=at_once)
        if first.state is ActionState.UNKNOWN:
            yield Write(statements.DOUBT, {"plan_uuid": plan}, None)
        if first.state is ActionState.PENDING:
            yield from writes(statements.AGAIN, uuids, values, at_once=at_once)
    for report in reports:
        if report.job is not None:
            yield from job_writes(plan, report, report.job)
    yield from reverts_of(plan, reports)


def reverts_of(plan: str, reports: Sequence[Report]) -> Iterator[Write]:
    """Yield the writes for the actions of other plans that the actions of reports have reverted."""
    for report in reports:
        if report.undoes and (undone := state_refusals.undone(plan, report)):
            values = {"plan_uuid": report.undoes.plan, **rows.report_values(undone)}
            yield from writes(statements.UNDONE, [undone.uuid], values, checked=False)


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
    transaction.insert("actionplan_history", history_row(plan, history))
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
    transaction.insert("actionplan_answer", row)


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
