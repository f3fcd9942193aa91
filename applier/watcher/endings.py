# SPDX-License-Identifier: Apache-2.0
"""Ends what cannot go on: refused plans, those whose applier has died, and actions in doubt.

Also deletes what the added tables keep of plans that Watcher has removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from applier.contracts import Claimant, Report
from applier.engines.environment import ActionEnvironment
from applier.errors import ActionNotFound, PlanConflict
from applier.run.interrupted_actions import InterruptedActions
from applier.run.resume import DEATHS
from applier.run.this_process import this_host
from applier.storage.state_refusals import SETTLED, require_settling
from applier.watcher import claims, database
from applier.watcher.actions import WatcherTypes, patience_s
from applier.watcher.database import (
    ACTIONS,
    PLANS,
    actions_of,
    among,
    attempts,
    naive,
    plan_row,
    runs,
    set_actions,
)
from applier.watcher.record import WatcherRecord
from applier.watcher.states import (
    CANCEL_STATES,
    DOUBT,
    cut,
    not_run,
    state_of,
    stopped_action,
    stopped_plan,
)
from planner.plan.states import ActionState, Outcome, PlanState

#: Watcher's states of actions that have not ended, and those of actions that are running.
OPEN, BEGUN = ("PENDING", "ONGOING", "CANCELLING"), ("ONGOING", "CANCELLING")
#: The message of an action of a cancelled plan whose work is not done. That of the report says that
#: it runs again.
_NOT_DONE = "it was interrupted; verified: its work is not done"
_DEADLY = f"it was interrupted {DEATHS} times in a row, and may be what kills the applier"
#: How many plans are purged in one transaction.
AT_ONCE = 200


@database.translated
def plan_state(uuid: str) -> str:
    """Return the state of a plan in Watcher's words; raises PlanNotFound."""
    with database.reading() as connection:
        return str(plan_row(connection, uuid).state)


@database.translated
def has_any(uuid: str, states: Sequence[str]) -> bool:
    """Return whether an action of a plan is in one of these states."""
    with database.reading() as connection:
        mine = actions_of(plan_row(connection, uuid).id, states)
        return connection.execute(mine.limit(1)).first() is not None


@database.translated
def refuse(uuid: str, reason: str, token: str | None) -> None:
    """Record why a plan cannot be run, or not to its end; Watcher's handler makes it FAILED.

    PENDING actions become CANCELLED. Running ones become FAILED with the message of an action in
    doubt. The claim ``token`` ends, if it is not None. If another process has claimed the plan,
    nothing is written.
    """
    now = datetime.now(UTC)
    with database.writing() as connection:
        run = claims.run_row(connection, uuid)
        if run is not None and run.claim is not None:
            if token is None or run.claim != token:
                return
            claims.release(connection, uuid, token)
        row = plan_row(connection, uuid, lock=True)
        set_actions(connection, among(row.id, ("PENDING",)), now, "CANCELLED", not_run(reason))
        _leave_in_doubt(connection, row, now)
        if row.state not in CANCEL_STATES:
            database.set_plan(connection, row, now, status_message=cut(reason))


def take_over(
    uuid: str, seen: Claimant, *, resume: bool, osc: Callable[[], Any] = lambda: None
) -> None:
    """End the claim of a claimant that has died.

    If a user has cancelled the plan, the cancel is completed: what was running is verified, and
    becomes SUCCEEDED if its work is done, CANCELLED if it is not done, and FAILED, in doubt, if
    nobody knows. Otherwise, with ``resume``, running actions are left to the next run, which
    verifies them, except for those that were interrupted too often. Without ``resume``, the plan
    and its open actions become CANCELLED, as Watcher does when an applier starts again. ``osc``
    returns the OpenStack clients. Raises PlanConflict if a heartbeat was written after ``seen`` was
    read, or the claim has ended, ApplierError, PlannerError.
    """
    cancelled = plan_state(uuid) in CANCEL_STATES
    _take_over(uuid, seen, resume, _verified(uuid, seen, osc) if cancelled else {})


@database.translated
def _take_over(uuid: str, seen: Claimant, resume: bool, found: Mapping[str, Report]) -> None:
    now = datetime.now(UTC)
    with database.writing() as connection:
        claims.end(connection, uuid, seen)
        row = plan_row(connection, uuid, lock=True)
        if row.state in CANCEL_STATES:
            set_actions(connection, among(row.id, ("PENDING",)), now, "CANCELLED", None)
            running = {action.uuid for action in connection.execute(actions_of(row.id, BEGUN))}
            for action in found.keys() & running:
                _end_as_found(connection, action, found[action], now)
            _leave_in_doubt(connection, row, now)
            database.set_plan(connection, row, now, state=str(PlanState.CANCELLED))
        elif resume:
            fail_repeatedly_interrupted(connection, uuid, now)
        else:
            host = claims.run_row(connection, uuid).service_host
            set_actions(connection, among(row.id, OPEN), now, "CANCELLED", stopped_action(host))
            told = {"state": str(PlanState.CANCELLED), "status_message": cut(stopped_plan(host))}
            database.set_plan(connection, row, now, **told)


def _verified(uuid: str, seen: Claimant, osc: Callable[[], Any]) -> Mapping[str, Report]:
    """Return a report for each running action of a plan whose claimant has died, by uuid."""
    types = WatcherTypes({}, osc=osc)
    plan = WatcherRecord(types, {}).load_plan(uuid)
    running = [a for a in plan.actions if a.state is ActionState.ONGOING and a.action_type in types]
    environment = ActionEnvironment(plugins=types)
    left = InterruptedActions(environment=environment, before=seen, host=this_host())
    found = left.verify(running, patience_s())
    return {finding.uuid: finding.report for finding in found if finding.report}


def _leave_in_doubt(connection: sa.Connection, row: Any, now: datetime) -> None:
    """Make what runs of a plan FAILED, in doubt, and end its open attempts as UNKNOWN."""
    set_actions(connection, among(row.id, BEGUN), now, "FAILED", DOUBT)
    doubt = {"state": str(ActionState.UNKNOWN), "message": DOUBT}
    _end_attempts(connection, attempts.c.plan_uuid == row.uuid, now, **doubt)


def _end_as_found(connection: sa.Connection, action: str, report: Report, now: datetime) -> None:
    """End a running action of a cancelled plan as its report says, unless it is in doubt."""
    if report.state is ActionState.SUCCEEDED:
        state, message = "SUCCEEDED", report.message
    elif report.state is ActionState.PENDING:
        state, message = "CANCELLED", _NOT_DONE
    else:
        return
    set_actions(connection, ACTIONS.c.uuid == action, now, state, message)
    told = {"outcome": report.outcome and str(report.outcome), "message": message}
    _end_attempts(connection, attempts.c.action_uuid == action, now, state=state, **told)


def _end_attempts(connection: sa.Connection, which: Any, now: datetime, **values: Any) -> None:
    """End open attempts, those for which ``which`` holds."""
    left = sa.update(attempts).where(which, attempts.c.ended_at.is_(None))
    connection.execute(left.values(ended_at=naive(now), **values))


def fail_repeatedly_interrupted(connection: sa.Connection, plan: str, now: datetime) -> None:
    """Make each running action FAILED whose last DEATHS attempts were all interrupted.

    Its open attempt ends as FAILED, too. The next run verifies the other running actions, and may
    run them again. It would do the same with an action in doubt.
    """
    tried = database.attempts_of(connection, plan)
    deadly = [uuid for uuid, rows in tried.items() if _is_deadly(rows)]
    set_actions(connection, ACTIONS.c.uuid.in_(deadly), now, "FAILED", _DEADLY)
    failed = {"state": "FAILED", "outcome": str(Outcome.FAILED), "message": _DEADLY}
    _end_attempts(connection, attempts.c.action_uuid.in_(deadly), now, **failed)


def _is_deadly(rows: list[Any]) -> bool:
    """Return whether the last of these attempts runs, and the last DEATHS were interrupted."""
    last = rows[-DEATHS:]
    cut_off = all(row.outcome in (None, Outcome.ERROR) for row in last)
    return len(last) == DEATHS and cut_off and last[-1].ended_at is None


@database.translated
def settle(plan: str, action: str, new: ActionState, *, now: datetime, message: str) -> None:
    """Set the state of an action in doubt to SUCCEEDED or FAILED, or of a FAILED one to SUCCEEDED.

    Its last attempt gets the same state and message; its duration does not count from then on.
    Raises PlanConflict if an applier has the plan, if this engine never ran it, or if the action is
    in another state. Raises InvalidTransition for another new state, PlanNotFound, ActionNotFound.
    """
    require_settling(action, new)
    database.prepare()
    with database.writing() as connection:
        held = plan_row(connection, plan, lock=True)
        _require_idle(connection, held)
        mine = actions_of(held.id).where(ACTIONS.c.uuid == action)
        row = connection.execute(mine).first()
        if row is None:
            raise ActionNotFound(plan, action)
        tried = database.attempts_of(connection, plan, [action]).get(action)
        last = tried[-1] if tried else None
        state = state_of(
            row.state, row.status_message, ActionState(last.state) if last and last.state else None
        )
        if state not in _accepted(new):
            text = f"action {action} is {state}: only {' and '.join(_accepted(new))} can be set to"
            raise PlanConflict(plan, str(state), f"{text} {new}")
        set_actions(connection, ACTIONS.c.uuid == action, now, str(new), message)
        if last is not None:
            known = {"state": str(new), "outcome": str(SETTLED[new]), "message": message}
            ended = sa.update(attempts).where(attempts.c.id == last.id)
            connection.execute(ended.values(ended_under=None, **known))


def _accepted(new: ActionState) -> Sequence[ActionState]:
    """Return the states from which an operator may set an action to ``new``."""
    failed = (ActionState.FAILED,) if new is ActionState.SUCCEEDED else ()
    return (ActionState.UNKNOWN, *failed)


def _require_idle(connection: sa.Connection, row: Any) -> None:
    """Raise PlanConflict if an applier has the plan of a row, or if this engine never ran it."""
    run, why = claims.run_row(connection, row.uuid), None
    if run is None:
        why = "the engine actionplan never ran it"
    elif run.claim is not None:
        why = f"process {run.pid} on {run.host} runs it, or has died: resume it then"
    elif row.state in ("ONGOING", "CANCELLING"):
        why = "an applier has it"
    if why:
        raise PlanConflict(row.uuid, row.state, f"plan {row.uuid} is {row.state}: {why}")


@database.translated
def purge() -> int:
    """Delete the rows of up to AT_ONCE plans that Watcher does not have; return how many."""
    with database.writing() as connection:
        gone = sa.select(runs.c.plan_uuid).where(
            runs.c.plan_uuid.not_in(sa.select(PLANS.c.uuid)),
            runs.c.plan_uuid != claims.FOLLOWER,
        )
        plans = list(connection.execute(gone.limit(AT_ONCE)).scalars())
        for table in (attempts, runs):
            connection.execute(sa.delete(table).where(table.c.plan_uuid.in_(plans)))
    return len(plans)
