# SPDX-License-Identifier: Apache-2.0
"""A RunStore, which runs of plans use, on Watcher's database.

Plans and actions are in Watcher's tables; claims and attempts are in those of
:mod:`applier.watcher.tables`. At the end of a run, Watcher's handler writes the same state of the
plan as the run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from watcher.db.sqlalchemy import models

from applier.contracts import ActionPlugin, Claimant, HistoryEntry, Report, Request, RequestVerb
from applier.errors import ActionNotFound, RequestsUnread
from applier.storage.claims import ends_claim
from applier.store import Attempt, Reservation
from applier.store.samples import MOST, Sample
from applier.watcher import claims, database, false_alarms
from applier.watcher.commits import Changes, ReportBatch, changes
from applier.watcher.plans import aware, plan_of, with_state
from applier.watcher.states import CANCEL_STATES, plan_message
from applier.watcher.tables import attempts, runs
from planner.model import ActionPlan
from planner.states import ActionState, Outcome, PlanState, Who, check

PLANS, ACTIONS = claims.PLANS, models.Action.__table__
_DID_WORK = (str(Outcome.CHANGED), str(Outcome.CREATED))


class WatcherRecord:
    """A RunStore on Watcher's database, for one run of one plan.

    ``service_host`` is the ``[DEFAULT] host`` of the applier. With ``resume``, a claimed plan has
    no ``hostname``, so that Watcher does not cancel it when its applier has died.
    """

    def __init__(
        self,
        types: Mapping[str, type[ActionPlugin]],
        limits: Mapping[str, int],
        *,
        service_host: str = "",
        resume: bool = False,
    ) -> None:
        self._types, self._limits = types, limits
        self._service_host, self._resume = service_host, resume
        #: The claim of this run; None before the plan is claimed.
        self.token: str | None = None
        #: By plan: the row of the last attempt of each action after the last commit. Missing before
        #: the first commit, and after one that failed.
        self._last: dict[str, dict[str, Mapping[str, Any]]] = {}

    @database.translated
    def load_plan(self, uuid: str) -> ActionPlan:
        """See :meth:`applier.store.runs.RunStore.load_plan`; raises InvalidPlan as well."""
        with database.reading() as connection:
            row = claims.plan_row(connection, uuid)
            rows = connection.execute(_actions_of(row.id)).all()
            begun = _attempts_of(connection, uuid)
        return plan_of(row, rows, self._types, self._limits, begun)

    @database.translated
    def refresh_plan(self, plan: ActionPlan) -> ActionPlan:
        """See :meth:`applier.store.runs.RunStore.refresh_plan`."""
        with database.reading() as connection:
            row = claims.plan_row(connection, plan.uuid)
            rows = connection.execute(_states_of(row.id)).all()
            begun = _attempts_of(connection, plan.uuid)
        known = {found.uuid: found for found in rows}
        return replace(
            plan,
            state=PlanState(row.state),
            updated_at=aware(row.updated_at),
            status_message=row.status_message,
            actions=tuple(
                with_state(a, known[a.uuid], begun.get(a.uuid, ())) for a in plan.actions
            ),
        )

    def claim_plan(self, uuid: str, claimant: Claimant, *, now: datetime) -> str:
        """Claim a plan that no other process runs; see :func:`applier.watcher.claims.claim`.

        Unlike other stores, it accepts an ONGOING plan, because Watcher's handler sets that state
        before it calls the engine.
        """
        host = self._service_host
        self._last.pop(uuid, None)
        self.token = claims.claim(
            uuid, claimant, service_host=host, hostname=None if self._resume else host, now=now
        )
        return self.token

    @database.translated
    def set_hostname(self, uuid: str) -> None:
        """Set the ``hostname`` of a plan to the host of its applier, or to NULL with ``resume``."""
        host = sa.select(runs.c.service_host).where(runs.c.plan_uuid == uuid).scalar_subquery()
        with database.writing() as connection:
            row = sa.update(PLANS).where(PLANS.c.uuid == uuid)
            connection.execute(row.values(hostname=None if self._resume else host))

    def claimant(self, uuid: str) -> Claimant | None:
        """Return the process that runs a plan; None if no process of this engine does."""
        return claims.claimant(uuid)

    @database.translated
    def last_claimant(self, uuid: str) -> Claimant | None:
        """See :meth:`applier.store.runs.RunStore.last_claimant`."""
        return claims.last_claimant(uuid)

    @database.translated
    def beat(self, uuid: str, claim: str, *, now: datetime) -> None:
        """See :meth:`applier.store.runs.RunStore.beat`."""
        with database.writing() as connection:
            claims.hold(connection, uuid, claim, now)

    @database.translated
    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        """See :meth:`applier.store.runs.RunStore.commit`."""
        for report in reports:
            check("action", report.uuid, report.old, report.state, Who.ENGINE)
        uuids = list({report.uuid for report in reports})
        batch = ReportBatch(plan=uuid, claim=claim, now=claims.naive(now), host=self._service_host)
        last = self._last.pop(uuid, None)
        with database.writing() as connection:
            claims.hold(connection, uuid, claim, now)
            if last is None:
                last = _last_attempts(connection, uuid)
            plan_id = sa.select(PLANS.c.id).where(PLANS.c.uuid == uuid).scalar_subquery()
            mine = _states_of(plan_id).where(ACTIONS.c.uuid.in_(uuids))
            rows = {row.uuid: row for row in connection.execute(mine.with_for_update())}
            made = changes(batch, reports, rows, last)
            _write(connection, uuid, made, last)
        last.update({action: attempt for (action, _), attempt in made.attempts.items()})
        self._last[uuid] = last

    @database.translated
    def move_claimed(
        self,
        uuid: str,
        claim: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
        read: int | None = None,
        history: HistoryEntry | None = None,  # noqa: ARG002
    ) -> None:
        """See :meth:`applier.store.runs.RunStore.move_claimed`; messages are those of Watcher."""
        with database.writing() as connection:
            claims.hold(connection, uuid, claim, now)
            row = claims.plan_row(connection, uuid)
            state = "ONGOING" if false_alarms.is_one(row, self._service_host) else row.state
            if state in CANCEL_STATES and read == 0:
                text = f"plan {uuid}: a cancel was requested that its claimant has not read"
                raise RequestsUnread(uuid, state, text)
            if state not in CANCEL_STATES:
                check("plan", uuid, PlanState(state), new, Who.ENGINE)
            values: dict[str, Any] = {"state": str(new), "updated_at": claims.naive(now)}
            if ends_claim(new):
                claims.release(connection, uuid, claim)
                false_alarms.restore_ended(connection, row, self._service_host, now)
                skipped = sa.select(ACTIONS.c.id).where(
                    ACTIONS.c.action_plan_id == row.id, ACTIONS.c.state == "SKIPPED"
                )
                some = connection.execute(skipped.limit(1)).first() is not None
                values["status_message"] = plan_message(new, message, skipped=some)
            if state != "CANCELLED":
                connection.execute(sa.update(PLANS).where(PLANS.c.uuid == uuid).values(**values))

    def reserve(
        self,
        uuid: str,
        claim: str,
        resources: Sequence[str],  # noqa: ARG002
        *,
        now: datetime,
    ) -> None:
        """Write a heartbeat; raises PlanConflict. Watcher has no reservations between plans."""
        self.beat(uuid, claim, now=now)

    def held_by_others(self, uuid: str) -> list[Reservation]:  # noqa: ARG002
        """Return an empty list: Watcher has no reservations between plans."""
        return []

    @database.translated
    def requests(self, plan: str, after: int = 0) -> list[Request]:
        """Return a cancel with the number 1 if a user has cancelled the plan, else an empty list.

        Watcher has no other requests. The list is also empty before this run has claimed the plan.
        A cancel that Watcher made because it takes this applier for dead is undone.
        """
        if after or self.token is None:
            return []
        with database.reading() as connection:
            row = claims.plan_row(connection, plan)
        if false_alarms.is_one(row, self._service_host):
            false_alarms.undo(plan, self.token, self._service_host, datetime.now(UTC))
            return []
        cancel = Request(verb=RequestVerb.CANCEL, who="a user of Watcher", number=1)
        return [cancel] if row.state in CANCEL_STATES else []

    @database.translated
    def attempts(self, plan: str, action: str) -> list[Attempt]:
        """See :meth:`applier.store.runs.RunStore.attempts`."""
        with database.reading() as connection:
            row = claims.plan_row(connection, plan)
            mine = _actions_of(row.id).where(ACTIONS.c.uuid == action)
            if connection.execute(mine).first() is None:
                raise ActionNotFound(plan, action)
            return _attempts_of(connection, plan, [action]).get(action, [])

    @database.translated
    def durations(
        self, action_types: Sequence[str], *, before: datetime | None = None, most: int = MOST
    ) -> dict[str, list[Sample]]:
        """See :meth:`applier.store.runs.RunStore.durations`."""
        with database.reading() as connection:
            return {name: _durations(connection, name, before, most) for name in action_types}


def _actions_of(plan_id: Any) -> Any:
    """Return the query for the actions of a plan that are not deleted, in the order of the plan."""
    kept = (ACTIONS.c.action_plan_id == plan_id, ACTIONS.c.deleted_at.is_(None))
    return sa.select(ACTIONS).where(*kept).order_by(ACTIONS.c.id)


def _states_of(plan_id: Any) -> Any:
    """Return the same query with only the columns uuid, action_type, state and status_message."""
    columns = (ACTIONS.c.uuid, ACTIONS.c.action_type, ACTIONS.c.state, ACTIONS.c.status_message)
    return _actions_of(plan_id).with_only_columns(*columns)


def _write(
    connection: sa.Connection, plan: str, made: Changes, last: Mapping[str, Mapping[str, Any]]
) -> None:
    """Update the rows of actions, and replace or insert the rows of attempts."""
    if made.actions:
        by_uuid = sa.update(ACTIONS).where(ACTIONS.c.uuid == sa.bindparam("of_uuid"))
        columns = next(iter(made.actions.values()))
        named = by_uuid.values({key: sa.bindparam(key) for key in columns})
        connection.execute(named, [{"of_uuid": u, **new} for u, new in made.actions.items()])
    old = [
        {"of_action": action, "of_number": number}
        for action, number in made.attempts
        if action in last and last[action]["number"] == number
    ]
    if old:
        one = (
            attempts.c.plan_uuid == plan,
            attempts.c.action_uuid == sa.bindparam("of_action"),
            attempts.c.number == sa.bindparam("of_number"),
        )
        connection.execute(sa.delete(attempts).where(*one), old)
    if made.attempts:
        connection.execute(sa.insert(attempts), list(made.attempts.values()))


def _last_attempts(connection: sa.Connection, plan: str) -> dict[str, Mapping[str, Any]]:
    """Return the last attempt of each action, without its id, which changes with each write."""
    found = _attempt_rows(connection, plan)
    return {
        uuid: {key: value for key, value in rows[-1].items() if key != "id"}
        for uuid, rows in found.items()
    }


def _attempt_rows(
    connection: sa.Connection, plan: str, actions: Sequence[str] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of attempts by action, oldest first; None means those of all actions."""
    query = sa.select(attempts).where(attempts.c.plan_uuid == plan).order_by(attempts.c.number)
    if actions is not None:
        query = query.where(attempts.c.action_uuid.in_(actions))
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        found[row["action_uuid"]].append(dict(row))
    return found


def _attempts_of(
    connection: sa.Connection, plan: str, actions: Sequence[str] | None = None
) -> dict[str, list[Attempt]]:
    found = _attempt_rows(connection, plan, actions)
    return {uuid: [_attempt(row) for row in rows] for uuid, rows in found.items()}


def _attempt(row: Mapping[str, Any]) -> Attempt:
    return Attempt(
        number=row["number"],
        started_at=row["started_at"].replace(tzinfo=UTC),
        ended_at=row["ended_at"] and row["ended_at"].replace(tzinfo=UTC),
        state=row["state"] and ActionState(row["state"]),
        outcome=row["outcome"] and Outcome(row["outcome"]),
        message=row["message"],
    )


def _durations(
    connection: sa.Connection, name: str, before: datetime | None, most: int
) -> list[Sample]:
    """Return the durations of the latest attempts of a type that did their work, latest first.

    Attempts that ended under another claim than they started do not count. The sizes and nodes of
    the samples are None, because Watcher does not store them.
    """
    query = (
        sa.select(attempts.c.started_at, attempts.c.ended_at)
        .where(attempts.c.action_type == name, attempts.c.state == "SUCCEEDED")
        .where(attempts.c.outcome.in_(_DID_WORK))
        .where(attempts.c.started_under == attempts.c.ended_under)
        .order_by(attempts.c.id.desc())
        .limit(most)
    )
    if before is not None:
        query = query.where(attempts.c.ended_at < before)
    took = [(row.ended_at - row.started_at).total_seconds() for row in connection.execute(query)]
    return [Sample(seconds) for seconds in took if seconds >= 0]
