# SPDX-License-Identifier: Apache-2.0
"""Changes of one plan's row, or of one action's, that are made once though they are tried twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from itertools import groupby

from applier.contracts import Report
from applier.errors import ActionNotFound
from applier.storage import claims, rows, statements, transitions
from applier.storage.action_statements import AGAIN, END, KEEP_ATTEMPT, START, UNDONE, writes
from applier.storage.compiled import Row
from applier.storage.database import Database, plan_row
from applier.storage.texts import storable
from applier.storage.transactions import Transaction, Write
from planner.states import ActionState, PlanState, StateReason, Who, check


@dataclass(frozen=True, slots=True)
class Move:
    """A plan gets another state, and what hangs on it is changed in the same transaction."""

    plan: str
    new: PlanState
    _: KW_ONLY
    now: datetime
    message: str | None
    name: str

    def make(
        self,
        database: Database,
        allowed: Callable[[Row], None],
        members: Callable[[Transaction], None] = lambda _: None,
    ) -> None:
        """Do it, unless it is done.

        ``allowed`` raises what the row of the plan gives reason for, ``members`` changes the
        actions. Raises PlanConflict if the plan is changed by somebody else in between.
        """
        head = database.head(self.plan)
        if head["last_write"] == self.name:
            return
        allowed(head)
        held = {"plan_uuid": self.plan, "old_state": head["state"], "held": head["claim"] or ""}
        with database.write() as transaction:
            moved = transaction.write(statements.MOVE, {**held, **self._values(head)})
            if moved:
                members(transaction)
                self._queue(transaction)
        if not moved:
            found = database.head(self.plan)
            if found["last_write"] != self.name:
                raise transitions.changed_meanwhile(self.plan, head["state"], found["state"])

    def _values(self, head: Row) -> rows.Changes:
        return {
            "new_state": str(self.new),
            "new_claim": None if claims.ends_claim(self.new) else head["claim"],
            "new_message": storable(self.message),
            "now": self.now,
            "write": self.name,
        }

    def _queue(self, transaction: Transaction) -> None:
        row = {"plan_uuid": self.plan}
        if claims.ends_claim(self.new):
            give_back(transaction, self.plan)
        if self.new is PlanState.PENDING:
            transaction.write(statements.QUEUE, {**row, "new_number": take_turn(transaction)})


@dataclass(frozen=True, slots=True)
class Change:
    """An action of a plan that nobody runs gets the state that an operator says."""

    plan: str
    action: str
    new: ActionState
    _: KW_ONLY
    now: datetime
    message: str
    name: str

    def make(self, database: Database, states: tuple[PlanState, ...]) -> None:
        """Do it, unless it is done; raises PlanConflict if the plan is in none of the states."""
        hold = {"plan_uuid": self.plan, "now": self.now, "write": self.name}
        with database.write() as transaction:
            held = transaction.write(statements.HOLD_STATE[states], hold)
            if held:
                self._write(transaction, database.at_once)
        if not held:
            head = database.head(self.plan)
            if head["last_write"] != self.name:
                raise claims.not_waiting(self.plan, head["state"], states)

    def _write(self, transaction: Transaction, at_once: int) -> None:
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
        )
        values = {"plan_uuid": self.plan, "now": self.now, **rows.report_values(report)}
        transaction.write_all(writes(END, [self.action], values, at_once=at_once))


def writes_of(plan: str, reports: Sequence[Report], now: datetime, at_once: int) -> Iterator[Write]:
    """Turn reports into what is written, in their order, in as few statements as that allows.

    Each action must be in the state that its report says.
    """
    for _, group in groupby(reports, _says):
        alike = list(group)
        first, uuids = alike[0], [report.uuid for report in alike]
        values = {"plan_uuid": plan, "now": now, **rows.report_values(first)}
        starts = first.state is ActionState.ONGOING
        yield from writes(START if starts else END, uuids, values, at_once=at_once)
        if first.old is ActionState.ONGOING:
            yield from writes(KEEP_ATTEMPT, uuids, values, at_once=at_once)
        if first.state is ActionState.PENDING:
            yield from writes(AGAIN, uuids, values, at_once=at_once)
    for report in reports:
        if report.undoes and (undone := transitions.undone(plan, report)):
            values = {"plan_uuid": report.undoes.plan, **rows.report_values(undone)}
            yield from writes(UNDONE, [undone.uuid], values, at_once=1, checked=False)


def _says(report: Report) -> tuple[object, ...]:
    """Return what a report says, apart from the action that it says it of."""
    return (
        report.old,
        report.state,
        report.outcome,
        report.state_reason,
        report.message,
        report.output,
    )


def take_turn(transaction: Transaction) -> int:
    """Give the next number of the queues: larger than all that were committed before."""
    transaction.write(statements.TAKE_TURN, {})
    number: int = transaction.read(statements.TURN)[0]["number"]
    return number


def give_back(transaction: Transaction, plan: str) -> None:
    """Let others have what a plan reserved."""
    transaction.write(statements.GIVE_BACK, {"plan_uuid": plan})
    transaction.write(statements.QUEUE_RESERVED, {"plan_uuid": plan, "new_number": None})


def action_row(transaction: Transaction, plan: str, action: str) -> Row:
    """Read how far an action is; raises PlanNotFound, ActionNotFound."""
    where = {"plan_uuid": plan, "action_uuid": action}
    found = transaction.read(statements.ACTION, where)
    if not found:
        plan_row(transaction, plan)
        raise ActionNotFound(plan, action)
    return found[0]
