# SPDX-License-Identifier: Apache-2.0
"""Watcher's planner ``actionplan``: plans the solution of a strategy with a planner of ours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

from oslo_config import cfg
from oslo_log import log
from watcher import notifications, objects
from watcher.common import context as watcher_context
from watcher.common import nova_helper, utils
from watcher.db.sqlalchemy import models
from watcher.decision_engine.planner import base
from watcher.notifications.action import ActionCreatePayload

from applier import configuration
from applier.watcher import database
from applier.watcher.notifications import emit, plan_payload
from applier.watcher.plans import action_rows, plan_solution
from planner.making.configuration_files import files_of
from planner.making.options import OPTIONS_IN_WATCHER
from planner.plan.states import PlanState

LOG = log.getLogger(__name__)


class ActionPlanPlanner(base.BasePlanner):
    """Makes a plan from a solution, and stores it in Watcher's tables in one transaction."""

    @classmethod
    def get_config_opts(cls) -> list[cfg.Opt]:
        """Return the options of ``[watcher_planners.actionplan]``."""
        return list(OPTIONS_IN_WATCHER)

    def schedule(self, context: Any, audit_id: int, solution: Any) -> Any:
        """Plan a solution, store the plan, and return Watcher's object of it.

        Everything is checked before anything is written. The plan of a solution without actions is
        SUCCEEDED. Raises PlannerError, ConfigurationError, StoreError.
        """
        plan = plan_solution(solution.actions, self.config.planner, _configuration(), _host_of)
        if not plan.actions:
            LOG.warning("The action plan is empty")
        for warning in plan.warnings:
            _tell_once(warning)
        strategy = objects.Strategy.get_by_name(context, solution.strategy.name)
        row = objects.ActionPlan(
            context,
            uuid=plan.uuid,
            audit_id=audit_id,
            strategy_id=strategy.id,
            state=str(plan.state),
            global_efficacy=solution.global_efficacy,
        )
        _store(row.obj_get_changes(), action_rows(plan), _indicator_rows(solution))
        stored = objects.ActionPlan.get_by_uuid(context, plan.uuid, eager=True)
        send(context, stored)
        return stored


@cache
def _tell_once(warning: str) -> None:
    """Log a warning of the planner; in each process once, because most hold for all plans."""
    LOG.warning("%s", warning)


def _configuration() -> cfg.ConfigOpts:
    """Read the files of Watcher's configuration again, with the option types of our own commands.

    Watcher's own configuration has some of the options with other types: weights as text.
    """
    files = [str(file) for file in files_of(cfg.CONF)]
    return configuration.load(files or [os.devnull], checked=False)


def _host_of(instance: str) -> str:
    nova = nova_helper.NovaHelper()
    return str(nova.get_hostname(nova.find_instance(instance)))


def _indicator_rows(solution: Any) -> list[dict[str, Any]]:
    return [
        {
            "uuid": utils.generate_uuid(),
            "name": indicator.name,
            "description": indicator.description,
            "unit": indicator.unit,
            "value": indicator.value,
            "data": indicator.value,
        }
        for indicator in solution.efficacy_indicators
    ]


@database.translated
def _store(
    plan: dict[str, Any], actions: Sequence[dict[str, Any]], indicators: Sequence[dict[str, Any]]
) -> None:
    """Write a plan with its actions and efficacy indicators in one transaction."""
    with database.writing() as connection:
        made = connection.execute(models.ActionPlan.__table__.insert(), plan).inserted_primary_key
        plan_id = made and made[0]
        for table, rows in ((models.EfficacyIndicator, indicators), (models.Action, actions)):
            if rows:
                of_plan = [{**row, "action_plan_id": plan_id} for row in rows]
                connection.execute(table.__table__.insert(), of_plan)


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
    everything = watcher_context.make_context(show_deleted=True)
    described = plan_payload(everything, plan)
    for action in objects.Action.list(context, filters={"action_plan_id": plan.id}):
        emit(context, "Create", ActionCreatePayload(action=action, action_plan=described))
