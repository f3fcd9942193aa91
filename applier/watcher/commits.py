# SPDX-License-Identifier: Apache-2.0
"""Computes the new rows of actions and attempts from a batch of reports. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from applier.contracts import Report
from applier.errors import ActionNotFound, PlanConflict
from applier.watcher.states import message_of, state_of, stopped_action, word
from planner.states import ActionState

#: The columns of an attempt that its end sets.
_END = ("ended_at", "ended_under", "state", "outcome", "message")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportBatch:
    """The plan, the claim and the time of reports that are written in one transaction.

    ``host`` is the ``[DEFAULT] host`` of the applier.
    """

    plan: str
    claim: str
    now: datetime
    host: str = ""


@dataclass(kw_only=True, slots=True)
class Changes:
    """New column values of actions by uuid, and new rows of attempts by action and number.

    A row of an attempt replaces the one with the same action and number, if there is one.
    """

    actions: dict[str, dict[str, Any]] = field(default_factory=dict)
    attempts: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)


def changes(
    batch: ReportBatch,
    reports: Iterable[Report],
    rows: Mapping[str, Any],
    attempts: Mapping[str, Mapping[str, Any]],
) -> Changes:
    """Return the changes by reports, which are applied in their order.

    ``rows`` are the rows of actions by uuid, with ``action_type``, ``state`` and
    ``status_message``. ``attempts`` has the row of the last attempt of each action. Raises
    ActionNotFound, or PlanConflict if an action is not in the old state of its report. Of an action
    that Watcher has CANCELLED, ends are accepted all the same. A start is accepted as well if
    Watcher cancelled it because it took this applier for dead.
    """
    made = Changes()
    last = {row: attempts[row] for row in rows if row in attempts}
    states = {uuid: _state(row, last.get(uuid)) for uuid, row in rows.items()}
    for report in reports:
        if report.uuid not in rows:
            raise ActionNotFound(batch.plan, report.uuid)
        found = states[report.uuid]
        taken_for_dead = rows[report.uuid].status_message == stopped_action(batch.host)
        counts = taken_for_dead or report.state is not ActionState.ONGOING
        if found is not report.old and not (found is ActionState.CANCELLED and counts):
            text = f"action {report.uuid} of plan {batch.plan} is {found}, not {report.old}"
            raise PlanConflict(batch.plan, str(found), text)
        states[report.uuid] = report.state
        made.actions[report.uuid] = {
            "state": word(report.state),
            "status_message": message_of(report),
            "updated_at": batch.now,
        }
        attempt = _attempt(batch, report, rows[report.uuid], last.get(report.uuid))
        if attempt is not None:
            last[report.uuid] = made.attempts[report.uuid, attempt["number"]] = attempt
    return made


def _state(row: Any, last: Mapping[str, Any] | None) -> ActionState:
    ended = last["state"] if last else None
    return state_of(row.state, row.status_message, ActionState(ended) if ended else None)


def _attempt(
    batch: ReportBatch, report: Report, row: Any, last: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return the new row of the attempt that a report starts, ends or continues, if any."""
    if report.state is ActionState.ONGOING and report.old is ActionState.PENDING:
        return {
            "plan_uuid": batch.plan,
            "action_uuid": report.uuid,
            "action_type": row.action_type,
            "number": last["number"] + 1 if last else 1,
            "started_at": batch.now,
            "started_under": batch.claim,
            **dict.fromkeys(_END),
        }
    if last is None:
        return None
    if report.state is ActionState.ONGOING:
        return {**last, **dict.fromkeys(_END)}
    if report.old is not ActionState.ONGOING:
        return None
    again = report.state is ActionState.PENDING
    return {
        **last,
        "ended_at": batch.now,
        "ended_under": batch.claim,
        "state": str(ActionState.FAILED if again else report.state),
        "outcome": report.outcome and str(report.outcome),
        "message": message_of(report),
    }
