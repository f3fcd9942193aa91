# SPDX-License-Identifier: Apache-2.0
"""The plans of Watcher: a store that runs use, on Watcher's database, and one for reading.

Plans and actions are in Watcher's tables; claims and attempts are in those of
:mod:`applier.watcher.database`. At the end of a run, Watcher's handler writes the same state of the
plan as the run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from applier.contracts import ActionPlugin, Claimant, HistoryEntry, Report, Request, RequestVerb
from applier.errors import ActionNotFound, ApplierError, RequestsUnread
from applier.storage.state_refusals import ends_claim
from applier.store import Attempt, PlanStore, Reservation, RunStore
from applier.store.plans import before_last, beginnings, choose
from applier.store.runs import MOST, Sample
from applier.watcher import claims, database
from applier.watcher.database import ACTIONS, PLANS, actions_of, attempts, naive, plan_row, runs
from applier.watcher.plans import aware, plan_of, with_state
from applier.watcher.states import CANCEL_STATES, Changes, ReportBatch, changes, plan_message
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState, Who, check

LOG = logging.getLogger(__name__)
_NOT_FOLLOWED = (
    "Plan %s: resume = true, but 'actionplan-watcher resume --follow' does not run: if this "
    "applier dies, Watcher cancels the plan, and it goes on after: actionplan-watcher resume %s"
)
_DID_WORK = (str(Outcome.CHANGED), str(Outcome.CREATED))


class WatcherRecord(RunStore):
    """A store on Watcher's database, for one run of one plan.

    ``service_host`` is the ``[DEFAULT] host`` of the applier. With ``resume``, a claimed plan has
    no ``hostname`` while a process follows, so that Watcher does not cancel it when its applier has
    died.
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
        """Return a plan with its current states; raises PlanNotFound, InvalidPlan."""
        with database.reading() as connection:
            row = plan_row(connection, uuid)
            rows = connection.execute(actions_of(row.id)).all()
            begun = self._attempts_of(connection, uuid)
        return plan_of(row, rows, self._types, self._limits, begun)

    @database.translated
    def refresh_plan(self, plan: ActionPlan) -> ActionPlan:
        with database.reading() as connection:
            row = plan_row(connection, plan.uuid)
            rows = connection.execute(_states_of(row.id)).all()
            begun = self._attempts_of(connection, plan.uuid)
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
        hides = self._resume and claims.is_followed(now)
        hostname = None if hides else host
        self.token = claims.claim(uuid, claimant, service_host=host, hostname=hostname, now=now)
        if self._resume and not hides:
            LOG.warning(_NOT_FOLLOWED, uuid, uuid)
        return self.token

    @database.translated
    def set_hostname(self, uuid: str) -> None:
        """Set the ``hostname`` of a plan as the claim does that another process has on it."""
        host = sa.select(runs.c.service_host).where(runs.c.plan_uuid == uuid).scalar_subquery()
        hides = self._resume and claims.is_followed(datetime.now(UTC))
        with database.writing() as connection:
            row = sa.update(PLANS).where(PLANS.c.uuid == uuid)
            connection.execute(row.values(hostname=None if hides else host))

    def claimant(self, uuid: str) -> Claimant | None:
        """Return the process that runs a plan; None if no process of this engine does."""
        return claims.claimant(uuid)

    def last_claimant(self, uuid: str) -> Claimant | None:
        return claims.last_claimant(uuid)

    @database.translated
    def beat(self, uuid: str, claim: str, *, now: datetime) -> None:
        with database.writing() as connection:
            claims.hold(connection, uuid, claim, now)

    @database.translated
    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        for report in reports:
            check("action", report.uuid, report.old, report.state, Who.ENGINE)
        uuids = list({report.uuid for report in reports})
        batch = ReportBatch(plan=uuid, claim=claim, now=naive(now), host=self._service_host)
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
        """Change the state of a claimed plan, as the run's own record does.

        The messages are those of Watcher.
        """
        with database.writing() as connection:
            claims.hold(connection, uuid, claim, now)
            row = plan_row(connection, uuid, lock=True)
            false_alarm = claims.is_false_alarm(row, self._service_host)
            state = "ONGOING" if false_alarm else row.state
            if state in CANCEL_STATES and read == 0:
                text = f"plan {uuid}: a cancel was requested that its claimant has not read"
                raise RequestsUnread(uuid, state, text)
            if state not in CANCEL_STATES:
                check("plan", uuid, PlanState(state), new, Who.ENGINE)
            values: dict[str, Any] = {"state": str(new)}
            if ends_claim(new):
                claims.release(connection, uuid, claim)
                claims.restore_ended(connection, row, self._service_host, now)
                skipped = connection.execute(actions_of(row.id, ["SKIPPED"]).limit(1)).first()
                values["status_message"] = plan_message(new, message, skipped=skipped is not None)
            if state != "CANCELLED":
                database.set_plan(connection, row, now, **values)

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
            row = plan_row(connection, plan)
        if claims.is_false_alarm(row, self._service_host):
            claims.undo_false_alarm(plan, self.token, self._service_host, datetime.now(UTC))
            return []
        cancel = Request(verb=RequestVerb.CANCEL, who="a user of Watcher", number=1)
        return [cancel] if row.state in CANCEL_STATES else []

    @database.translated
    def attempts(self, plan: str, action: str) -> list[Attempt]:
        with database.reading() as connection:
            row = plan_row(connection, plan)
            mine = actions_of(row.id).where(ACTIONS.c.uuid == action)
            if connection.execute(mine).first() is None:
                raise ActionNotFound(plan, action)
            return self._attempts_of(connection, plan, [action]).get(action, [])

    @database.translated
    def durations(
        self, action_types: Sequence[str], *, before: datetime | None = None, most: int = MOST
    ) -> dict[str, list[Sample]]:
        with database.reading() as connection:
            return {name: _durations(connection, name, before, most) for name in action_types}

    def _attempts_of(
        self, connection: sa.Connection, plan: str, actions: Sequence[str] | None = None
    ) -> dict[str, list[Attempt]]:
        found = database.attempts_of(connection, plan, actions)
        return {uuid: [_attempt(row) for row in rows] for uuid, rows in found.items()}


def _states_of(plan_id: Any) -> Any:
    """Return the same query with only the columns uuid, action_type, state and status_message."""
    columns = (ACTIONS.c.uuid, ACTIONS.c.action_type, ACTIONS.c.state, ACTIONS.c.status_message)
    return actions_of(plan_id).with_only_columns(*columns)


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
    found = database.attempts_of(connection, plan)
    return {
        uuid: {key: value for key, value in rows[-1]._mapping.items() if key != "id"}
        for uuid, rows in found.items()
    }


def _attempt(row: Any) -> Attempt:
    return Attempt(
        number=row.number,
        started_at=row.started_at.replace(tzinfo=UTC),
        ended_at=aware(row.ended_at),
        state=row.state and ActionState(row.state),
        outcome=row.outcome and Outcome(row.outcome),
        message=row.message,
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


class StoredPlans(WatcherRecord, PlanStore):
    """Watcher's plans; the tables of ActionPlan may be missing in the database."""

    def __init__(self, types: Mapping[str, type[ActionPlugin]], limits: Mapping[str, int]) -> None:
        super().__init__(types, limits)
        self._is_ours = database.has_table(runs)

    @database.translated
    def find_plan(self, reference: str) -> str:
        """Return the uuid of a plan by a reference: a uuid, a beginning of one, or ``last``.

        Raises PlanNotFound if several plans match, ApplierError if none does.
        """
        kept = sa.select(PLANS.c.uuid).where(PLANS.c.deleted_at.is_(None))
        earlier = before_last(reference)
        if earlier is not None:
            query = kept.order_by(PLANS.c.id.desc()).limit(1).offset(earlier)
        else:
            query = kept.where(PLANS.c.uuid.startswith(reference, autoescape=True))
        with database.reading() as connection:
            known = [str(row.uuid) for row in connection.execute(query)]
        if not known:
            raise ApplierError(
                f"no plan {reference!r} in Watcher's database; a plan is named by its uuid, a "
                "unique beginning of it, or 'last' (see: openstack optimize actionplan list)"
            )
        if earlier is not None:
            return known[0]
        return choose(reference, [(uuid, None) for uuid in known])

    @database.translated
    def load_plan(self, uuid: str) -> ActionPlan:
        """Return a plan, with the attempts of its runs by our engine; raises PlanNotFound.

        The names of its actions are unique beginnings of their uuids. Raises InvalidPlan as well.
        """
        plan = super().load_plan(uuid)
        uuids = sorted(action.uuid for action in plan.actions)
        names = dict(zip(uuids, beginnings(uuids), strict=True))
        return replace(plan, actions=tuple(replace(a, name=names[a.uuid]) for a in plan.actions))

    def load_part(self, uuid: str, reference: str) -> ActionPlan:  # noqa: ARG002
        """Return the whole plan: Watcher's plans are short."""
        return self.load_plan(uuid)

    def long_plan(self, uuid: str) -> None:
        """Return None: no overview is kept of Watcher's plans."""

    def history(self, plan: str) -> list[HistoryEntry]:  # noqa: ARG002
        """Return an empty list: Watcher keeps no history."""
        return []

    def _attempts_of(
        self, connection: sa.Connection, plan: str, actions: Sequence[str] | None = None
    ) -> dict[str, list[Attempt]]:
        return super()._attempts_of(connection, plan, actions) if self._is_ours else {}

    def claimant(self, uuid: str) -> Claimant | None:
        return super().claimant(uuid) if self._is_ours else None

    def last_claimant(self, uuid: str) -> Claimant | None:
        return super().last_claimant(uuid) if self._is_ours else None

    def durations(
        self, action_types: Sequence[str], *, before: datetime | None = None, most: int = MOST
    ) -> dict[str, list[Sample]]:
        return super().durations(action_types, before=before, most=most) if self._is_ours else {}
