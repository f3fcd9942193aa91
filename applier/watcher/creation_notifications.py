# SPDX-License-Identifier: Apache-2.0
"""Watcher's notifications of a plan that was stored: ``action_plan.create``, ``action.create``.

Watcher's own function for ``action.create`` is not used, because it reads the audit and the
strategy from the database for each action.
"""

from __future__ import annotations

from typing import Any

from oslo_config import cfg
from watcher import notifications, objects
from watcher.common import context as watcher_context
from watcher.notifications.action import ActionCreateNotification, ActionCreatePayload
from watcher.notifications.action_plan import TerseActionPlanPayload
from watcher.notifications.base import EventType, NotificationPublisher
from watcher.objects.fields import NotificationAction, NotificationPriority

from planner.states import PlanState


def send(context: Any, plan: Any) -> None:
    """Send the notifications that Watcher's planners send for a new plan, in the same order.

    ``plan`` is Watcher's object of a plan, with its audit and strategy. Nothing is sent if
    ``[DEFAULT] notification_level`` is empty.
    """
    if not cfg.CONF.notification_level:
        return
    notifications.action_plan.send_create(context, plan)
    if plan.state == PlanState.SUCCEEDED:
        notifications.action_plan.send_update(context, plan, old_state=str(PlanState.RECOMMENDED))
    payload = _payload(plan)
    for action in objects.Action.list(context, filters={"action_plan_id": plan.id}):
        ActionCreateNotification(
            priority=NotificationPriority.INFO,
            event_type=EventType(object="action", action=NotificationAction.CREATE),
            publisher=NotificationPublisher(host=cfg.CONF.host, binary="infra-optim"),
            payload=ActionCreatePayload(action=action, action_plan=payload),
        ).emit(context)


def _payload(plan: Any) -> Any:
    """Return the description of the plan that the notification of each of its actions contains."""
    strategy, everything = None, watcher_context.make_context(show_deleted=True)
    if plan.audit.strategy_id:
        strategy = objects.Strategy.get(everything, plan.audit.strategy_id).uuid
    return TerseActionPlanPayload(
        action_plan=plan, audit_uuid=plan.audit.uuid, strategy_uuid=strategy
    )
