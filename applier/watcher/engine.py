# SPDX-License-Identifier: Apache-2.0
"""Watcher's workflow engine ``actionplan``: runs the actions of Watcher's plans by our engine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from oslo_config import cfg
from watcher import objects
from watcher.applier.workflow_engine.base import BaseWorkFlowEngine
from watcher.applier.workflow_engine.default import DefaultWorkFlowEngine
from watcher.common.exception import ActionPlanCancelled, WorkflowExecutionException

from applier.contracts import RunOptions
from applier.engines.environment import ActionEnvironment
from applier.errors import ApplierError, PlanConflict
from applier.run import this_process
from applier.run.liveness import gone, has_died, is_gone
from applier.run.runner import Runner
from applier.scheduling.failures import OnFailure
from applier.watcher import claims, database, endings
from applier.watcher.actions import WatcherTypes, patience_s
from applier.watcher.engine_options import ENGINE_OPTIONS, SECTION
from applier.watcher.notifications import Notifier
from applier.watcher.record import WatcherRecord
from applier.watcher.states import CANCEL_STATES
from planner.errors import PlannerError
from planner.making import registry
from planner.plan.states import PlanState

CONF = cfg.CONF
LOG = logging.getLogger(__name__)
#: The section of Watcher's own engine.
_STOCK = "watcher_workflow_engines.taskflow"
#: Never set; its ``wait`` is used to sleep.
_NEVER = threading.Event()


class ActionPlanEngine(BaseWorkFlowEngine):
    """Runs the actions of a plan that have not ended.

    By default, a failure stops only the actions that need the failed one. While another process
    runs the plan, the engine waits.
    """

    @classmethod
    def get_config_opts(cls) -> Sequence[cfg.Opt]:
        """Return the options of ``[watcher_workflow_engines.actionplan]``."""
        return list(ENGINE_OPTIONS)

    def execute(self, actions: Sequence[Any]) -> None:
        """Run the actions of one plan that have not ended; Watcher's handler computes its state.

        Does nothing if all have ended. Raises ActionPlanCancelled if the plan was cancelled. Raises
        WorkflowExecutionException if it cannot be run, with the reason in its ``status_message``,
        and if it FAILED although none of its actions did.
        """
        if not any(action.state in endings.OPEN for action in actions):
            return
        uuid = actions[0].action_plan.uuid
        record = None
        try:
            database.prepare()
            _look_after_the_past()
            with Notifier(
                self.context, actions, lambda: self.notify_cancel_start(uuid)
            ) as notifier:
                types = WatcherTypes(
                    self.config.touches, osc=lambda: self.osc, on_begin=notifier.begun
                )
                record = WatcherRecord(
                    types, self.config.limits, service_host=CONF.host, resume=self.config.resume
                )
                state = self._run(uuid, record, self._runner(uuid, record, types, notifier))
        except (ApplierError, PlannerError) as reason:
            LOG.warning("Plan %s: %s", uuid, reason)
            endings.refuse(uuid, str(reason), record.token if record else None)
            raise WorkflowExecutionException(error=str(reason)) from reason
        if state in CANCEL_STATES:
            self.notify_cancel_start(uuid)
            raise ActionPlanCancelled(uuid=uuid)
        # Watcher's handler fails a plan with a FAILED action.
        if state == PlanState.FAILED and not endings.has_any(uuid, ["FAILED"]):
            raise WorkflowExecutionException(error="an action that is needed was cancelled before")

    def _run(self, uuid: str, record: WatcherRecord, runner: Callable[[], Runner]) -> str:
        """Run a plan, after waiting while another process runs it; return its state at the end."""
        while True:
            self._await_others(record, uuid)
            state = endings.plan_state(uuid)
            if state in CANCEL_STATES or not endings.has_any(uuid, endings.OPEN):
                return state
            try:
                return runner().run(uuid)
            except PlanConflict as conflict:
                LOG.warning("Plan %s: %s", uuid, conflict)
                if claims.is_claimed_by(uuid, record.token):
                    return self._broken_off(uuid, record, conflict)

    def _broken_off(self, uuid: str, record: WatcherRecord, conflict: PlanConflict) -> str:
        """End the claim on a plan that Watcher cancelled during its run; return the plan's state.

        Its open actions end as :func:`applier.watcher.endings.refuse` states. Raises the conflict
        if the plan was not cancelled.
        """
        state = endings.plan_state(uuid)
        if state not in CANCEL_STATES:
            raise conflict
        endings.refuse(uuid, str(conflict), record.token)
        return state

    def _await_others(self, record: WatcherRecord, uuid: str) -> None:
        """Block until no process runs the plan; end the claim of a process that has died.

        If it has died, the plan can be claimed with ``resume``, and is CANCELLED without it.
        """
        while (claimant := record.claimant(uuid)) is not None:
            record.set_hostname(uuid)
            if has_died(record, uuid, claimant, wait=_NEVER.wait):
                LOG.warning("Plan %s: %s", uuid, gone(claimant))
                resume = self.config.resume
                try:
                    endings.take_over(uuid, claimant, resume=resume, osc=lambda: self.osc)
                except PlanConflict as conflict:
                    LOG.info("Plan %s: %s", uuid, conflict)

    def _options(self, uuid: str) -> RunOptions:
        """Return the options of a run; the effect of a failure may have a rule for its strategy."""
        CONF.register_opts(DefaultWorkFlowEngine.get_config_opts(), group=_STOCK)
        plan = objects.ActionPlan.get_by_uuid(self.context, uuid, eager=True)
        rule = plan.strategy and CONF[_STOCK].action_execution_rule.get(plan.strategy.name)
        on_failure = OnFailure.by_rule(rule) if rule else self.config.on_failure
        read_from = _STOCK if rule else SECTION
        return RunOptions(self.config.max_workers, SECTION, str(on_failure), read_from)

    def _runner(
        self, uuid: str, record: WatcherRecord, types: WatcherTypes, notifier: Notifier
    ) -> Callable[[], Runner]:
        """Return a function that makes a new Runner with the options of this engine."""
        options = self._options(uuid)
        return partial(
            Runner,
            store=record,
            engine=registry.load(registry.ENGINES, "taskflow")(max_workers=options.max_workers),
            environment=ActionEnvironment(plugins=types),
            claimant=this_process.claimant(),
            options_of=lambda _: options,
            listeners=(notifier,),
            heartbeat_interval_s=self.config.heartbeat_interval_s,
            verify_patience_s=patience_s(),
        )


@cache
def _look_after_the_past() -> None:
    """End cancelled plans whose applier has died here, and purge; in each process once.

    Watcher calls nothing of an engine when an applier starts, only when that gets its first plan.
    """
    for uuid, claimant in claims.claimed().items():
        try:
            if is_gone(claimant) and endings.plan_state(uuid) == "CANCELLING":
                endings.take_over(uuid, claimant, resume=True)
                LOG.warning("Plan %s: %s; its cancel was finished", uuid, gone(claimant))
        except (ApplierError, PlannerError) as reason:
            LOG.warning("Plan %s: %s", uuid, reason)
    if number := endings.purge():
        LOG.info("Deleted what was kept of %d plans that Watcher has removed", number)
