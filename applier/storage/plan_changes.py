# SPDX-License-Identifier: Apache-2.0
"""Changes plans in a database, and their actions, as operators ask."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from types import EllipsisType

from applier.contracts import ActionOf, Claimant, HistoryEntry, Report
from applier.errors import ActionNotFound, PlanConflict
from applier.storage import damage, rows, state_refusals, statements
from applier.storage.database import PartOfStore
from applier.storage.state_changes import (
    Move,
    action_row,
    change_waiting,
    note,
    reverts_of,
    writes_of,
)
from applier.storage.statements import Row, writes
from applier.storage.transactions import Transaction, Unexpected
from planner.errors import short
from planner.plan.states import ActionState, PlanState, StateReason, Who, check


class PlanChanges(PartOfStore):
    """The methods of the store that change plans for operators.

    ``history`` is the entry of a change in the history. It is written in the transaction of the
    change: with the change, or not at all, and once if a call is repeated.
    """

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
        """Change the state of a plan that nobody runs, as an operator requests.

        ``message`` replaces the plan's status message; None clears it. The state CANCELLED also
        cancels the actions that have not started. ``reports`` are the ends of actions that were
        running when their applier died; they are written as by
        :meth:`applier.store.runs.RunStore.commit`. If the new state is CANCELLED or PAUSED, running
        actions without a report become UNKNOWN. ``seen`` is a claimant that has died: its claim
        ends.

        Raises InvalidTransition for a transition that is not in the table of states. Raises
        PlanConflict if somebody else changed the plan or a reported action at the same time, if it
        is claimed by another than ``seen``, or if ``seen`` has written a heartbeat since.
        """
        for report in reports:
            check("action", report.uuid, report.old, report.state, Who.ENGINE)

        def decide(head: Row) -> PlanState:
            claimant = rows.claimant_of(head)
            if seen is not None:
                state_refusals.require_seen(uuid, head["state"], claimant, seen)
            check("plan", uuid, PlanState(head["state"]), new, Who.OPERATOR)
            if head["state"] == PlanState.DELETED:
                raise state_refusals.not_moved(uuid, new)
            state_refusals.require_free(uuid, head["state"], claimant, seen)
            return new

        def members(transaction: Transaction) -> Sequence[Report]:
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
            return [*reports, *left]

        Move(uuid, now, decide, message, members, history).make(self._database, new)

    def start_plan(
        self,
        uuid: str,
        start_at: datetime | None,
        *,
        now: datetime,
        history: HistoryEntry | None = None,
    ) -> None:
        """Make a plan PENDING, to be claimed at ``start_at`` or later; None: as soon as possible.

        Before that time, ``pending_plans`` does not list the plan, and it cannot be claimed. For a
        plan that is PENDING already, only the time is changed. Any later change of its state clears
        the time. Raises InvalidTransition and PlanConflict as
        :meth:`move_plan` does, and InvalidTransition for a
        PENDING plan that has this time already.
        """
        new = PlanState.PENDING

        def decide(head: Row) -> PlanState:
            if head["state"] != new or head["start_at"] == start_at:
                check("plan", uuid, PlanState(head["state"]), new, Who.OPERATOR)
            state_refusals.require_free(uuid, head["state"], rows.claimant_of(head), None)
            return new

        Move(uuid, now, decide, history=history, start_at=start_at).make(self._database, new)

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
        """Make a plan and the named actions PENDING again, all or nothing.

        The plan may be PAUSED, FAILED or CANCELLED, or SUCCEEDED if actions are named. It may also
        be ONGOING or CANCELLING by a claimant that has died, whose claim ends. Outcome, message and
        times of the named actions are cleared; their attempts are kept. ONGOING and UNKNOWN actions
        keep their state: the next claimant verifies them. ``seen`` is the claimant at the time of
        the decision to resume; None means that there was none, and ``...`` accepts any.

        Raises InvalidTransition if the state of the plan or of an action does not allow it,
        ActionNotFound, PlanNotFound. Raises PlanConflict if the plan is claimed by another than
        ``seen``, or if ``seen`` has written a heartbeat since. If two callers resume a plan at
        once, one of them gets one of these errors.
        """
        wanted = tuple(dict.fromkeys(actions))

        def members(transaction: Transaction) -> Sequence[Report]:
            rows = transaction.read(statements.STATES, {"plan_uuid": uuid})
            found = {row["uuid"]: row["state"] for row in rows}
            for action in wanted:
                if action not in found:
                    raise ActionNotFound(uuid, action)
                state = ActionState(found[action])
                check("action", action, state, ActionState.PENDING, Who.OPERATOR)
            values = {"plan_uuid": uuid, "new_message": None}
            transaction.write_all(
                writes(statements.AGAIN, wanted, values, at_once=self._database.at_once)
            )
            return [
                Report(uuid=action, old=ActionState(found[action]), state=ActionState.PENDING)
                for action in wanted
            ]

        def decide(head: Row) -> PlanState:
            state_refusals.require_seen(uuid, head["state"], rows.claimant_of(head), seen)
            state_refusals.require_resumable(uuid, PlanState(head["state"]), wanted)
            return PlanState.PENDING

        Move(uuid, now, decide, message, members, history).make(self._database, "resume", wanted)

    def remove_damaged_plan(self, uuid: str, *, history: HistoryEntry | None = None) -> None:
        """Delete a damaged plan, with everything that belongs to it except its events.

        Its history is deleted as well; then ``history``, the entry of the removal, is written.
        Raises PlanConflict for a plan that is not damaged, PlanNotFound.
        """

        def remove() -> None:
            if not damage.problems(self._database.read, uuid):
                raise PlanConflict(uuid, "sound", f"plan {short(uuid)} is not damaged")
            with self._database.write() as transaction:
                for statement in statements.ALL_OF_A_PLAN:
                    transaction.write(statement, {"plan_uuid": uuid})
                if history is not None:
                    note(transaction, uuid, history, at=history.at)

        self._database.tried(remove)

    def skip_action(
        self,
        plan: str,
        action: str,
        *,
        now: datetime,
        message: str,
        history: HistoryEntry | None = None,
    ) -> None:
        """Skip a PENDING action of a plan that nobody runs (RECOMMENDED, PENDING or PAUSED).

        Raises PlanConflict for a plan in another state, ActionNotFound, InvalidTransition.
        """
        waiting, new = state_refusals.WAITING_PLAN, ActionState.SKIPPED
        self._settle(plan, action, new, waiting, now, message, history)

    def reword_skip(self, plan: str, action: str, *, message: str) -> None:
        """Replace the message of a SKIPPED action.

        Raises PlanConflict for an action in another state, PlanNotFound, ActionNotFound.
        """
        where = {"plan_uuid": plan, "action_uuid": action}

        def reword(transaction: Transaction) -> None:
            change = {**where, "new_message": rows.storable(message)}
            if not transaction.write(statements.REWORD_SKIP, change):
                state = action_row(transaction, plan, action)["state"]
                text = f"action {short(action)} is {state}: only a skip has such a message"
                raise PlanConflict(plan, state, text)

        self._database.writing(reword)

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
        """Set the state of an UNKNOWN or FAILED action, in a plan that nobody runs.

        With SUCCEEDED, the outcome becomes ``changed``, with FAILED ``failed``. Attempts are not
        changed. ``undoes`` is the action of another plan that it reverts, which becomes REVERTED or
        REVERT_FAILED. Raises PlanConflict for a plan that is claimed, superseded or removed;
        InvalidTransition for an action in another state or another ``new``; ActionNotFound.
        """
        state_refusals.require_settling(action, new)
        unclaimed = state_refusals.UNCLAIMED_PLAN
        self._settle(plan, action, new, unclaimed, now, message, history, undoes)

    def _settle(
        self,
        plan: str,
        action: str,
        new: ActionState,
        states: Collection[PlanState],
        now: datetime,
        message: str,
        history: HistoryEntry | None,
        undoes: ActionOf | None = None,
    ) -> None:
        """Change the state of an action in a plan that is in one of ``states``, once."""

        def write(transaction: Transaction) -> None:
            old = ActionState(action_row(transaction, plan, action)["state"])
            check("action", action, old, new, Who.OPERATOR)
            report = Report(
                uuid=action,
                old=old,
                state=new,
                outcome=state_refusals.SETTLED.get(new),
                state_reason=StateReason.OPERATOR,
                message=message,
                undoes=undoes,
            )
            values = {"plan_uuid": plan, "now": now, **rows.report_values(report)}
            transaction.write_all(writes(statements.END, [action], values))
            note(transaction, plan, history, report, at=now)
            # After its event, which takes the state before from the row.
            transaction.write_all(reverts_of(plan, [report]))

        key = (action, new, message)
        change_waiting(self._database, plan, write, *key, states=states, now=now)


def _left_open(
    transaction: Transaction, uuid: str, new: PlanState, message: str | None
) -> list[Report]:
    """Return a report for each action of a plan that the state ``new`` of the plan ends.

    Those of actions that were running are ``given_up``: they may still be at work.
    """
    left_open = state_refusals.LEFT_OPEN.get(new)
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
