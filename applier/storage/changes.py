"""Changes of one plan's row, or of one action's, that are made once though they are tried twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from itertools import groupby

import sqlalchemy as sa

from applier.contracts import Report
from applier.errors import ActionNotFound
from applier.storage import rows, rules
from applier.storage import statements as said
from applier.storage.database import Database, plan_row
from planner.states import ActionState, PlanState, Who, check


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
        allowed: Callable[[rows.Row], None],
        members: Callable[[sa.Connection], None] = lambda _: None,
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
        with database.write() as connection:
            moved = connection.execute(said.MOVE, {**held, **self._values(head)}).rowcount
            if moved:
                members(connection)
                self._queue(connection)
        if not moved:
            found = database.head(self.plan)
            if found["last_write"] != self.name:
                raise rules.changed_meanwhile(self.plan, head["state"], found["state"])

    def _values(self, head: rows.Row) -> rows.Changes:
        return {
            "new_state": str(self.new),
            "new_claim": None if rules.gives_up(self.new) else head["claim"],
            "new_message": rules.kept(self.message),
            "now": self.now,
            "write": self.name,
        }

    def _queue(self, connection: sa.Connection) -> None:
        row = {"plan_uuid": self.plan}
        if rules.gives_up(self.new):
            give_back(connection, self.plan)
        if self.new is PlanState.PENDING:
            connection.execute(said.QUEUE, {**row, "new_number": take_turn(connection)})


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

    def make(self, database: Database, states: Collection[PlanState]) -> None:
        """Do it, unless it is done; raises PlanConflict if the plan is in none of the states."""
        hold: rows.Changes = {"plan_uuid": self.plan, "states": [*map(str, states)]}
        hold |= {"now": self.now, "write": self.name}
        with database.write() as connection:
            held = connection.execute(said.HOLD_STATE, hold).rowcount
            if held:
                self._write(connection)
        if not held:
            head = database.head(self.plan)
            if head["last_write"] != self.name:
                raise rules.not_waiting(self.plan, head["state"], states)

    def _write(self, connection: sa.Connection) -> None:
        old = ActionState(action_row(connection, self.plan, self.action)["state"])
        check("action", self.action, old, self.new, Who.OPERATOR)
        outcome = rules.SETTLED.get(self.new)
        report = Report(
            uuid=self.action, old=old, state=self.new, outcome=outcome, message=self.message
        )
        connection.execute(said.END, rows.report_row(self.plan, report, self.now))


def write_reports(
    connection: sa.Connection, plan: str, reports: Sequence[Report], now: datetime
) -> bool:
    """Write a batch in its order, in as few statements as that allows.

    False if a row is not in the state that its report says: then all must be undone.
    """
    for (starts, ends, waits), group in groupby(reports, _kind):
        changes = [rows.report_row(plan, report, now) for report in group]
        if connection.execute(said.START if starts else said.END, changes).rowcount != len(changes):
            return False
        if ends:
            connection.execute(said.KEEP_ATTEMPT, changes)
        if waits:
            connection.execute(said.AGAIN, changes)
    undone = [(r.undoes.plan, u) for r in reports if r.undoes and (u := rules.undone(plan, r))]
    if undone:
        connection.execute(said.UNDONE, [rows.report_row(p, r, now) for p, r in undone])
    return True


def _kind(report: Report) -> tuple[bool, bool, bool]:
    """Say whether an attempt starts, whether one ends, and whether the action waits again."""
    ongoing, pending = ActionState.ONGOING, ActionState.PENDING
    return report.state is ongoing, report.old is ongoing, report.state is pending


def take_turn(connection: sa.Connection) -> int:
    """Give the next number of the queues: larger than all that were committed before."""
    connection.execute(said.TAKE_TURN)
    number: int = connection.execute(said.TURN).scalar_one()
    return number


def give_back(connection: sa.Connection, plan: str) -> None:
    """Let others have what a plan reserved."""
    connection.execute(said.GIVE_BACK, {"plan_uuid": plan})
    connection.execute(said.QUEUE_RESERVED, {"plan_uuid": plan, "new_number": None})


def action_row(connection: sa.Connection, plan: str, action: str) -> rows.Row:
    """Read how far an action is; raises PlanNotFound, ActionNotFound."""
    where = {"plan_uuid": plan, "action_uuid": action}
    row = connection.execute(said.ACTION, where).mappings().one_or_none()
    if row is None:
        plan_row(connection, plan)
        raise ActionNotFound(plan, action)
    return row
