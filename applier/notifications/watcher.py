# SPDX-License-Identifier: Apache-2.0
"""Watcher's names of states, and our events as the versioned notifications of Watcher.

==============================  ====================================  ========
Event                           Type of the notification              Priority
==============================  ====================================  ========
plan.state RECOMMENDED          action_plan.create                    INFO
plan.state ONGOING              action_plan.execution.start           INFO
plan.state SUCCEEDED            action_plan.execution.end             INFO
plan.state FAILED               action_plan.execution.error           ERROR
plan.state CANCELLING           action_plan.cancel.start              INFO
plan.state CANCELLED            action_plan.cancel.end                INFO
plan.state DELETED              action_plan.delete                    INFO
plan.state, any other           action_plan.update                    INFO
action.state ONGOING            action.execution.start                INFO
action.state SUCCEEDED          action.execution.end                  INFO
action.state FAILED, UNKNOWN    action.execution.error                ERROR
action.state CANCELLED          action.cancel.end                     INFO
action.state, any other         action.update                         INFO
plan.approved                   action_plan.approve                   INFO
plan.history                    none: Watcher has no such thing
==============================  ====================================  ========

Watcher has no approvals: that type and its payload are ours, in the form of Watcher's. States have
the names that Watcher gives them. A field is left out if its event has no value for it. The event
itself is the field ``event`` of the payload's data.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from applier.notifications.schema import ACTION_STATE, PLAN_APPROVED, PLAN_STATE, Event
from planner.plan.states import ActionState, PlanState

INFO, ERROR = "INFO", "ERROR"
#: The type without ``action_plan.`` or ``action.``, and the class of the payload, by state.
_PLANS = {
    PlanState.RECOMMENDED: ("create", "ActionPlanCreatePayload"),
    PlanState.ONGOING: ("execution.start", "ActionPlanActionPayload"),
    PlanState.SUCCEEDED: ("execution.end", "ActionPlanActionPayload"),
    PlanState.FAILED: ("execution.error", "ActionPlanActionPayload"),
    PlanState.CANCELLING: ("cancel.start", "ActionPlanCancelPayload"),
    PlanState.CANCELLED: ("cancel.end", "ActionPlanCancelPayload"),
    PlanState.DELETED: ("delete", "ActionPlanDeletePayload"),
}
_ACTIONS = {
    ActionState.ONGOING: ("execution.start", "ActionExecutionPayload"),
    ActionState.SUCCEEDED: ("execution.end", "ActionExecutionPayload"),
    ActionState.FAILED: ("execution.error", "ActionExecutionPayload"),
    ActionState.UNKNOWN: ("execution.error", "ActionExecutionPayload"),
    ActionState.CANCELLED: ("cancel.end", "ActionCancelPayload"),
}
#: Versions of the payloads in Watcher 17.
_PLAN_VERSION, _ACTION_VERSION, _UPDATE_VERSION, _FAULT_VERSION = "1.2", "1.1", "1.1", "1.0"


class Notification(NamedTuple):
    """A notification without its envelope."""

    event_type: str
    priority: str
    payload: Mapping[str, Any]


def notification(event: Event) -> Notification | None:
    """Return the notification of an event; None if Watcher has no such type.

    >>> data = {"state": "ONGOING", "message": None}
    >>> event = {"type": "plan.state", "plan": "6a1f", "at": "2026-01-02T03:04:05+00:00"}
    >>> made = notification({**event, "data": data})
    >>> made.event_type, made.payload["watcher_object.data"]["updated_at"]
    ('action_plan.execution.start', '2026-01-02T03:04:05Z')
    """
    if event["type"] == PLAN_STATE:
        return _of_plan(event)
    if event["type"] == ACTION_STATE:
        return _of_action(event)
    if event["type"] == PLAN_APPROVED:
        return _of_approval(event)
    return None


def _of_plan(event: Event) -> Notification:
    state = PlanState(event["data"]["state"])
    word = plan_word(state)
    kind, name = _PLANS.get(state, ("update", "ActionPlanUpdatePayload"))
    data = {"uuid": event["plan"], **_state(event, state, word)}
    # The event of a plan does not contain the state that the plan has left.
    data |= _more(kind, "ActionPlan", data, old=None, failure="WorkflowExecutionException")
    return _made(f"action_plan.{kind}", name, _PLAN_VERSION, data, event)


def _of_approval(event: Event) -> Notification:
    data = {"uuid": event["plan"], **event["data"], "updated_at": _moment(event)}
    return _made("action_plan.approve", "ActionPlanApprovePayload", "1.0", data, event)


def _of_action(event: Event) -> Notification:
    told = event["data"]
    state = ActionState(told["state"])
    kind, name = _ACTIONS.get(state, ("update", "ActionUpdatePayload"))
    plan = _object("TerseActionPlanPayload", _PLAN_VERSION, {"uuid": event["plan"]})
    data = {
        "uuid": event["action"],
        "action_type": told["action_type"],
        "action_plan_uuid": event["plan"],
        "action_plan": plan,
        **_state(event, state, action_word(state)),
    }
    old = action_word(ActionState(told["old"]))
    data |= _more(kind, "Action", data, old=old, failure="ActionExecutionFailure")
    return _made(f"action.{kind}", name, _ACTION_VERSION, data, event)


def _state(event: Event, state: PlanState | ActionState, word: str) -> dict[str, Any]:
    message = with_own_word(state, word, event["data"]["message"])
    moment = "created_at" if state is PlanState.RECOMMENDED else "updated_at"
    return {"state": word, "status_message": message, moment: _moment(event)}


def _moment(event: Event) -> str:
    at = datetime.fromisoformat(event["at"]).astimezone(UTC)
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _more(
    kind: str, of: str, data: Mapping[str, Any], *, old: str | None, failure: str
) -> dict[str, Any]:
    """Return the field ``state_update`` of an update, or ``fault`` of a phase; else nothing."""
    if kind == "update":
        update = {"old_state": old, **{k: data[k] for k in ("state", "status_message")}}
        return {"state_update": _object(f"{of}StateUpdatePayload", _UPDATE_VERSION, update)}
    if kind == "execution.error":
        text = data["status_message"] or ""
        fault = {"exception": failure, "exception_message": text}
        fault |= {"module_name": "applier", "function_name": "execute"}
        return {"fault": _object("ExceptionPayload", _FAULT_VERSION, fault)}
    return {"fault": None} if "." in kind else {}


def _made(
    kind: str, name: str, version: str, data: Mapping[str, Any], event: Event
) -> Notification:
    priority = ERROR if kind.endswith(".error") else INFO
    return Notification(kind, priority, _object(name, version, {**data, "event": event}))


def _object(name: str, version: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "watcher_object.name": name,
        "watcher_object.namespace": "watcher",
        "watcher_object.version": version,
        "watcher_object.data": data,
    }


#: Watcher's names of states that have another name there.
_PLAN_WORDS = {PlanState.PAUSED: PlanState.PENDING}
_ACTION_WORDS = {
    ActionState.FAILED_DEPENDENCIES: ActionState.CANCELLED,
    ActionState.REVERTED: ActionState.CANCELLED,
    ActionState.REVERT_FAILED: ActionState.FAILED,
    ActionState.UNKNOWN: ActionState.FAILED,
}


def plan_word(state: PlanState) -> str:
    """Return Watcher's word for the state of a plan.

    >>> plan_word(PlanState.PAUSED), plan_word(PlanState.ONGOING)
    ('PENDING', 'ONGOING')
    """
    return str(_PLAN_WORDS.get(state, state))


def action_word(state: ActionState) -> str:
    """Return Watcher's word for the state of an action.

    >>> action_word(ActionState.UNKNOWN), action_word(ActionState.REVERTED)
    ('FAILED', 'CANCELLED')
    """
    return str(_ACTION_WORDS.get(state, state))


def with_own_word(state: PlanState | ActionState, shown: str, message: str | None) -> str | None:
    """Return a message, after our word for a state if ``shown`` is another one.

    >>> with_own_word(PlanState.PAUSED, "PENDING", "by anna")
    'PAUSED: by anna'
    """
    if str(state) == shown:
        return message
    return f"{state}: {message}" if message else str(state)
