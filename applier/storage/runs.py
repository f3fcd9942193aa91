# SPDX-License-Identifier: Apache-2.0
"""Records runs of plans in a database: claims, commits, reservations, requests and attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from applier.contracts import Claimant, HistoryEntry, Report, Request
from applier.errors import DamagedRows, PlanConflict, RequestsUnread, sound_part
from applier.storage import event_rows, rows, state_refusals, statements
from applier.storage.database import PartOfStore, plan_row
from applier.storage.event_rows import Entered
from applier.storage.state_changes import (
    Move,
    action_row,
    give_back,
    note,
    run_by,
    take_turn,
    writes_of,
)
from applier.storage.statements import Row, Write
from applier.storage.transactions import Kind, Rows, Transaction, Unexpected
from applier.store import Attempt, Reservation, RunStore
from planner.errors import short
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, PlanState, Who, check
from planner.safe_text import compact_json


class Runs(PartOfStore, RunStore):
    """The methods of the store for plans that are being run."""

    #: The plans whose runs write events, as last read from ``publishes`` of their rows.
    _publishing: set[str]

    def refresh_plan(self, plan: ActionPlan) -> ActionPlan:
        def read(transaction: Transaction) -> ActionPlan:
            head = plan_row(transaction, plan.uuid)
            states = transaction.read(statements.STATES, {"plan_uuid": plan.uuid})
            return rows.refreshed(plan, head, states)

        return self._database.reading(read)

    def claim_plan(self, uuid: str, claimant: Claimant, *, now: datetime) -> str:
        def claim(transaction: Transaction) -> None:
            if transaction.write(statements.CLAIM, change):
                entered = Entered(PlanState.ONGOING, None)
                note(transaction, uuid, run_by(claimant, now), entered, at=now)
                return
            head = plan_row(transaction, uuid)
            # The claim is ours if an earlier try was written, but its answer was lost.
            if head["claim"] != token:
                raise state_refusals.cannot_claim(uuid, head["state"], head["start_at"])

        with self._database.named(uuid, "claim", claimant) as token:
            change = {"plan_uuid": uuid, "new_claim": token, "now": now}
            change |= {"host": claimant.host, "pid": claimant.pid, "user": claimant.user}
            change |= {"interval_s": claimant.heartbeat_interval_s, "jobs": claimant.jobs}
            change |= {"options": compact_json(claimant.options) if claimant.options else None}
            self._database.writing(claim)
        return token

    def claimant(self, uuid: str) -> Claimant | None:
        """Return the claimant of a plan, or None if it has none; raises PlanNotFound."""
        return self._database.tried(lambda: rows.claimant_of(self._database.head(uuid)))

    def last_claimant(self, uuid: str) -> Claimant | None:
        return self._database.tried(lambda: rows.last_claimant_of(self._database.head(uuid)))

    def beat(self, uuid: str, claim: str, *, now: datetime) -> None:
        held = {"plan_uuid": uuid, "held": claim, "now": now}

        def beat(transaction: Transaction) -> None:
            if not transaction.write(statements.BEAT, held):
                raise state_refusals.lost_claim(uuid, plan_row(transaction, uuid)["state"])

        self._database.writing(beat)

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        for report in reports:
            check("action", report.uuid, report.old, report.state, Who.ENGINE)

        def write() -> None:
            is_written = False
            while not is_written:
                publishes = uuid in self._publishing
                held["publishes"] = int(publishes)
                told = event_rows.event_writes(uuid, reports, now) if publishes else ()
                try:
                    with self._database.write() as transaction:
                        transaction.write_all([hold, *told, *reported])
                    is_written = True
                except Unexpected:
                    is_written = self._was_written(uuid, claim, reports, name)

        with self._database.named(uuid, "commit", claim, *reports) as name:
            held: dict[str, Any] = {"plan_uuid": uuid, "held": claim, "now": now, "write": name}
            hold = Write(statements.HOLD_CLAIM, held, 1)
            reported = list(writes_of(uuid, reports, now, self._database.at_once))
            self._database.tried(write)

    def _was_written(self, uuid: str, claim: str, reports: Sequence[Report], name: str) -> bool:
        """Return whether an earlier try of a commit that has changed no rows has written it.

        If it has not, the commit has to be repeated, because since the last one somebody has
        subscribed to events, or nobody is left. Raises the error of any other reason.
        """
        with self._database.read() as transaction:
            head = plan_row(transaction, uuid)
            if head["last_write"] == name:
                return True
            if head["claim"] != claim:
                raise state_refusals.lost_claim(uuid, head["state"])
            if bool(head["publishes"]) != (uuid in self._publishing):
                self._publishing ^= {uuid}
                return False
            for report in reports:
                found = action_row(transaction, uuid, report.uuid)["state"]
                if found != report.old:
                    action = f"action {report.uuid} of plan {uuid}"
                    text = f"{action} is {found}, not {report.old} as its report says"
                    raise PlanConflict(uuid, head["state"], text)
        text = f"plan {uuid}: two reports of one batch start from one state"
        raise PlanConflict(uuid, head["state"], text)

    def move_claimed(
        self,
        uuid: str,
        claim: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
        read: int | None = None,
        history: HistoryEntry | None = None,
    ) -> None:
        def decide(head: Row) -> PlanState:
            if head["claim"] != claim:
                raise state_refusals.lost_claim(uuid, head["state"])
            check("plan", uuid, PlanState(head["state"]), new, Who.ENGINE)
            if read is not None and head["requests"] > read:
                text = f"plan {short(uuid)} has a request that its claimant has not read"
                raise RequestsUnread(uuid, head["state"], text)
            return new

        Move(uuid, now, decide, message, history=history).make(self._database, new, claim)
        if state_refusals.ends_claim(new):
            self._publishing.discard(uuid)

    def reserve(self, uuid: str, claim: str, resources: Sequence[str], *, now: datetime) -> None:
        wanted = [{"plan": uuid, "resource": resource} for resource in dict.fromkeys(resources)]

        def reserve(transaction: Transaction) -> None:
            hold = {"plan_uuid": uuid, "held": claim, "now": now, "write": self._database.new_id()}
            if not transaction.write(statements.HOLD_CLAIM, {**hold, "publishes": None}):
                raise state_refusals.lost_claim(uuid, plan_row(transaction, uuid)["state"])
            # This comes first: if two plans reserve at once, the second waits here for the commit
            # of the first, and then reads its reservations.
            number = take_turn(transaction)
            give_back(transaction, uuid)
            if wanted:
                transaction.insert("actionplan_reservation", *wanted)
            turn = {"plan_uuid": uuid, "new_number": number}
            transaction.write(statements.QUEUE_RESERVED, turn)

        self._database.writing(reserve)

    def held_by_others(self, uuid: str) -> list[Reservation]:
        def read(transaction: Transaction) -> list[Reservation]:
            found = transaction.read(statements.HELD, {"plan_uuid": uuid})
            if not found:
                plan_row(transaction, uuid)
            first: dict[str, Reservation] = {}
            for row in found:
                first.setdefault(row["resource"], Reservation(**row))
            return [first[resource] for resource in sorted(first)]

        return self._database.reading(read)

    def add_request(
        self, plan: str, request: Request, *, now: datetime, history: HistoryEntry | None = None
    ) -> None:
        """Save a request for the claimant of a plan, which reads it later.

        Raises PlanConflict if the plan has no claimant, PlanNotFound.
        """

        def add(transaction: Transaction) -> None:
            is_claimed = transaction.write(statements.COUNT_REQUEST, {"plan_uuid": plan})
            head = plan_row(transaction, plan)
            if not is_claimed:
                why = ": nobody runs it, so nobody would read a request"
                raise state_refusals.refused(plan, head["state"], why)
            row = rows.request_row(plan, head["requests"], request, now)
            transaction.insert("actionplan_request", row)
            note(transaction, plan, history, at=now)

        self._database.writing(add, lost_too=False)

    def requests(self, plan: str, after: int = 0) -> list[Request]:
        asked = {"plan_uuid": plan, "after": after}
        return self._database.listed(lambda found: found.of(_REQUESTS, statements.REQUESTS, asked))

    def attempts(self, plan: str, action: str) -> list[Attempt]:
        where = {"plan_uuid": plan, "action_uuid": action}

        def read(found: Rows) -> list[Attempt]:
            row = action_row(found.transaction, plan, action)
            tried = [one for _, one in found.of(_ATTEMPTS, statements.ATTEMPTS, where)]
            if row["state"] == ActionState.ONGOING and row["started_at"] is not None:
                tried.append(Attempt(number=row["attempts"], started_at=row["started_at"]))
            return tried

        return self._database.listed(read)

    def all_attempts(self, plan: str, *, most: int) -> dict[str, list[Attempt]]:
        """Return the ended attempts of all actions of a plan by uuid of action, oldest first.

        Only the last ``most`` characters of each output are read. Raises PlanNotFound.
        """
        where = {"plan_uuid": plan, "most": most}

        def read(found: Rows) -> dict[str, list[Attempt]]:
            plan_row(found.transaction, plan)
            tried: dict[str, list[Attempt]] = {}
            for action, one in found.of(_ATTEMPTS, statements.ALL_ATTEMPTS, where):
                tried.setdefault(action, []).append(one)
            return tried

        return self._database.listed(read)

    def output(self, plan: str, action: str) -> str | None:
        """Return the output of the last attempt of an action, at most its last 64 KiB.

        None if the action has not been started, runs at present, or has no output. Raises
        ActionNotFound. The uuid of an action is unique within its plan only.
        """
        tried, damaged = sound_part(lambda: self.attempts(plan, action))
        last = tried[-1].number if tried else 0
        if any(row.values.get("number", last) >= last for row in damaged):
            raise DamagedRows(damaged, tried)
        return tried[-1].output if tried else None


def _attempt(row: Row) -> tuple[str, Attempt]:
    return row["action"], rows.attempt_of(row)


_REQUESTS = Kind("actionplan_request", rows.request_of, "request {number}")
_ATTEMPTS = Kind("actionplan_attempt", _attempt, "attempt {number} of action {action}")
