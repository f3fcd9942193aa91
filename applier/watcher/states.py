# SPDX-License-Identifier: Apache-2.0
"""Converts states, messages and reports to what Watcher's tables and ours store. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from applier.contracts import Report
from applier.errors import ActionNotFound, PlanConflict
from applier.notifications.watcher import action_word
from applier.storage.rows import storable
from planner.plan.states import ActionState, PlanState

#: The longest ``status_message`` of a row, in characters.
LONGEST = 255
#: The beginning of the message of an action that this engine did not run. Watcher has one word for
#: it and for an action that a user or Watcher cancelled, CANCELLED, and its table of actions has
#: no other column; ours have rows only for attempts. So the text is written by :func:`not_run` and
#: read by :func:`says_not_run`, and nowhere else.
_NOT_RUN = "not run: "
#: The message of an action in doubt.
DOUBT = (
    "in doubt: it was interrupted, and nobody knows whether its work is done; look, then: "
    "actionplan-watcher action set PLAN ACTION --state succeeded|failed --reason TEXT"
)
#: The message that Watcher writes for a plan with skipped actions.
SOME_SKIPPED = "One or more actions were skipped."
#: The states of plans in which Watcher's handler and services start no more actions.
CANCEL_STATES = ("CANCELLING", "CANCELLED")

_STOPPED = "{} was cancelled because Applier {} was stopped while the action plan was ongoing."
_REFUSED = re.compile("[\U00010000-\U0010ffff]")
#: CANCELLING is Watcher's state of an action that is being aborted, and still runs.
_OURS = {"CANCELLING": ActionState.ONGOING}


def stopped_plan(host: str) -> str:
    """Return the message of a plan that Watcher cancels because its applier was stopped."""
    return _STOPPED.format("Action plan", host)


def stopped_action(host: str) -> str:
    """Return the message of an action that Watcher cancels because its applier was stopped."""
    return _STOPPED.format("Action", host)


def not_run(reason: str) -> str:
    """Return the message of a CANCELLED action that this engine did not run.

    >>> says_not_run(not_run("needs a1, which ended FAILED")), says_not_run("needs a1")
    (True, False)
    """
    return cut(f"{_NOT_RUN}{reason}") or ""


def says_not_run(message: str | None) -> bool:
    """Return whether :func:`not_run` made the message of a CANCELLED action."""
    return message is not None and message.startswith(_NOT_RUN)


def state_of(text: str, message: str | None, last_attempt: ActionState | None) -> ActionState:
    """Return our state of an action, from the state and message of its row.

    ``last_attempt`` is the state in which its last attempt ended, or None. If it is UNKNOWN, a
    FAILED action is in doubt.

    >>> str(state_of("FAILED", "in doubt: ...", ActionState.UNKNOWN))
    'UNKNOWN'
    >>> str(state_of("CANCELLED", "not run: needs a1, which ended FAILED", None))
    'FAILED_DEPENDENCIES'
    """
    state = _OURS.get(text) or ActionState(text)
    if state is ActionState.FAILED and last_attempt is ActionState.UNKNOWN:
        return ActionState.UNKNOWN
    if state is ActionState.CANCELLED and says_not_run(message):
        return ActionState.FAILED_DEPENDENCIES
    return state


def message_of(report: Report) -> str | None:
    """Return the ``status_message`` of an action for a report; None for none.

    A CANCELLED action has none, as with Watcher's own engine.
    """
    if report.state is ActionState.CANCELLED:
        return None
    if report.state is ActionState.UNKNOWN:
        return DOUBT
    if report.state is ActionState.FAILED_DEPENDENCIES:
        return not_run(report.message or "what it needs did not end well")
    return cut(report.message)


def cut(text: str | None) -> str | None:
    """Shorten a text to LONGEST characters, the last of them three dots; None stays None.

    Characters that a database cannot store are replaced, also those above U+FFFF, which Watcher's
    tables in MySQL reject.

    >>> len(cut("x" * 300)), cut("short")
    (255, 'short')
    """
    if text is None:
        return None
    clean = _REFUSED.sub("\N{REPLACEMENT CHARACTER}", storable(text) or "")
    return clean if len(clean) <= LONGEST else clean[: LONGEST - 3] + "..."


def plan_message(state: PlanState, message: str | None, *, skipped: bool) -> str | None:
    """Return the ``status_message`` of a plan that ends, as Watcher's handler would write it.

    Only a plan that FAILED gets ``message``, unless actions were skipped.
    """
    if state is PlanState.CANCELLED:
        return None
    if skipped:
        return SOME_SKIPPED
    return cut(message) if state is PlanState.FAILED else None


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
            "state": action_word(report.state),
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
