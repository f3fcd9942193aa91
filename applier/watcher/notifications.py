# SPDX-License-Identifier: Apache-2.0
"""Sends Watcher's versioned notifications of actions, in the order in which its own engine does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from oslo_config import cfg
from watcher import objects
from watcher.notifications import action as notifications
from watcher.notifications import action_plan as plan_notifications
from watcher.notifications import base
from watcher.notifications.exception import ExceptionPayload
from watcher.objects.fields import NotificationPhase as Phase
from watcher.objects.fields import NotificationPriority as Priority

from applier.contracts import Report
from applier.notifications.watcher import action_word
from applier.watcher.states import message_of
from planner.plan.states import ActionState, PlanState

CONF = cfg.CONF
LOG = logging.getLogger(__name__)


class Notifier:
    """A Listener that sends notifications in the order of the commits, from a thread of its own.

    ``actions`` are those of one plan, as Watcher's applier loads them. ``cancel_begins`` is called
    in the thread when the plan becomes CANCELLING. As a context manager, it waits at the end until
    all notifications are sent. If ``[DEFAULT] notification_level`` is empty, nothing is sent or
    called, and the database is not read.
    """

    def __init__(
        self, context: Any, actions: Sequence[Any], cancel_begins: Callable[[], None]
    ) -> None:
        self._context, self._cancel_begins = context, cancel_begins
        self._actions: dict[str, Any] = {action.uuid: action for action in actions}
        self._on = bool(CONF.notification_level)
        self._plan = plan_payload(context, actions[0].action_plan) if self._on else None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="notifications")

    def __enter__(self) -> Notifier:
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown()

    def begun(self, uuid: str) -> None:
        """Queue the notifications of the start of an action, whose pre_condition has passed."""
        self._later(partial(self._begin, uuid))

    def on_plan(self, state: PlanState, message: str | None) -> None:  # noqa: ARG002
        """Queue the call of ``cancel_begins`` if the plan becomes CANCELLING."""
        if state is PlanState.CANCELLING:
            self._later(self._cancel_begins)

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Queue the notifications of ends and retries; :meth:`begun` queues those of starts."""
        for report in reports:
            if report.state is not ActionState.ONGOING:
                self._later(partial(self._end, report))

    def _later(self, send: Callable[[], None]) -> None:
        if self._on:
            self._thread.submit(send).add_done_callback(_log_error)

    def _begin(self, uuid: str) -> None:
        self._execution(uuid, Phase.START)
        self._change(uuid, {"state": str(ActionState.ONGOING)})
        self._update(uuid)

    def _end(self, report: Report) -> None:
        uuid, old = report.uuid, self._actions[report.uuid].state
        change = {"state": action_word(report.state), "status_message": message_of(report)}
        if report.state is ActionState.CANCELLED:
            self._cancel(uuid, Phase.START)
        self._change(uuid, change)
        self._update(uuid)
        if report.state is ActionState.SKIPPED:
            self._update(uuid, old_state=old)
        elif report.state is ActionState.SUCCEEDED:
            self._execution(uuid, Phase.END)
        elif report.state in (ActionState.FAILED, ActionState.UNKNOWN):
            self._execution(uuid, Phase.ERROR, fault=_fault(change["status_message"]))
        elif report.state is ActionState.CANCELLED:
            self._cancel(uuid, Phase.END)

    def _change(self, uuid: str, values: Mapping[str, Any]) -> None:
        known = self._actions[uuid]
        fields = {name: known[name] for name in _FIELDS if known.obj_attr_is_set(name)}
        self._actions[uuid] = objects.Action(self._context, **{**fields, **values})

    def _update(self, uuid: str, old_state: str | None = None) -> None:
        action = self._actions[uuid]
        changed = notifications.ActionStateUpdatePayload(
            old_state=old_state,
            state=action.state if old_state else None,
            status_message=action.status_message if old_state else None,
        )
        self._emit(uuid, "Update", state_update=changed)

    def _execution(self, uuid: str, phase: str, fault: Any = None) -> None:
        self._emit(uuid, "Execution", phase, fault=fault)

    def _cancel(self, uuid: str, phase: str) -> None:
        self._emit(uuid, "Cancel", phase, fault=None)

    def _emit(self, uuid: str, kind: str, phase: str | None = None, **fields: Any) -> None:
        """Send a notification of Watcher's class ``ActionKINDNotification``."""
        payload_class = getattr(notifications, f"Action{kind}Payload")
        payload = payload_class(action=self._actions[uuid], action_plan=self._plan, **fields)
        emit(self._context, kind, payload, phase)


def emit(context: Any, kind: str, payload: Any, phase: str | None = None) -> None:
    """Send Watcher's notification ``ActionKINDNotification``, as an error if that is its phase."""
    event = {"phase": phase} if phase else {}
    getattr(notifications, f"Action{kind}Notification")(
        priority=Priority.ERROR if phase == Phase.ERROR else Priority.INFO,
        event_type=base.EventType(object="action", action=kind.lower(), **event),
        publisher=base.NotificationPublisher(host=CONF.host, binary="infra-optim"),
        payload=payload,
    ).emit(context)


#: The fields of an action that its notifications contain.
_FIELDS = (
    "uuid",
    "action_type",
    "input_parameters",
    "state",
    "parents",
    "status_message",
    "created_at",
    "updated_at",
    "deleted_at",
)


def plan_payload(context: Any, plan: Any) -> Any:
    """Return the payload that describes the plan in each notification of its actions."""
    audit = objects.Audit.get(context, plan.audit_id)
    strategy = objects.Strategy.get(context, audit.strategy_id) if audit.strategy_id else None
    return plan_notifications.TerseActionPlanPayload(
        action_plan=plan,
        audit_uuid=audit.uuid,
        strategy_uuid=strategy.uuid if strategy else None,
    )


def _fault(message: str | None) -> Any:
    return ExceptionPayload(
        module_name=__name__,
        function_name="execute",
        exception="ActionExecutionFailure",
        exception_message=message or "",
    )


def _log_error(sent: Future[None]) -> None:
    error = sent.exception()
    if error is not None:
        LOG.error("A notification could not be sent: %s: %s", type(error).__name__, error)
