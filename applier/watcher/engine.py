# SPDX-License-Identifier: Apache-2.0
"""Watcher's workflow engine ``actionplan``: runs the actions of Watcher's plans by our engine."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from oslo_config import cfg
from watcher.applier.workflow_engine.base import BaseWorkFlowEngine
from watcher.common.exception import ActionPlanCancelled, WorkflowExecutionException

from applier.engines.environment import ActionEnvironment
from applier.errors import ApplierError, PlanConflict
from applier.run import this_process
from applier.run.liveness import gone, has_died
from applier.run.runner import Runner
from applier.run.setup import RunSetup
from applier.scheduling.verdict import OnFailure
from applier.watcher import database, endings, interrupted, purging, verify
from applier.watcher.actions import WatcherTypes
from applier.watcher.engine_options import ENGINE_OPTIONS
from applier.watcher.notifications import Notifier
from applier.watcher.record import WatcherRecord
from applier.watcher.states import CANCEL_STATES
from planner import registry
from planner.errors import PlannerError
from planner.states import PlanState

CONF = cfg.CONF
LOG = logging.getLogger(__name__)
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
            _purge_once()
            with Notifier(
                self.context, actions, lambda: self.notify_cancel_start(uuid)
            ) as notifier:
                types = WatcherTypes(
                    self.config.touches, osc=lambda: self.osc, on_begin=notifier.begun
                )
                record = WatcherRecord(
                    types, self.config.limits, service_host=CONF.host, resume=self.config.resume
                )
                state = self._run(uuid, record, self._runner(record, types, notifier))
        except (ApplierError, PlannerError) as reason:
            LOG.warning("Plan %s: %s", uuid, reason)
            endings.refuse(uuid, str(reason), record.token if record else None)
            raise WorkflowExecutionException(error=str(reason)) from reason
        if state in CANCEL_STATES:
            self.notify_cancel_start(uuid)
            raise ActionPlanCancelled(uuid=uuid)
        if state == PlanState.FAILED and not endings.has_failed(uuid):
            raise WorkflowExecutionException(error="an action that is needed was cancelled before")

    def _run(self, uuid: str, record: WatcherRecord, runner: Callable[[], Runner]) -> str:
        """Run a plan, after waiting while another process runs it; return its state at the end."""
        while True:
            self._await_others(record, uuid)
            state = endings.plan_state(uuid)
            if state in CANCEL_STATES or not endings.is_open(uuid):
                return state
            try:
                return runner().run(uuid)
            except PlanConflict as conflict:
                LOG.warning("Plan %s: %s", uuid, conflict)
                if endings.is_claimed_by(uuid, record.token):
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
                found = interrupted.found(uuid, claimant, lambda: self.osc)
                try:
                    endings.take_over(uuid, claimant, resume=self.config.resume, found=found)
                except PlanConflict as conflict:
                    LOG.info("Plan %s: %s", uuid, conflict)

    def _runner(
        self, record: WatcherRecord, types: WatcherTypes, notifier: Notifier
    ) -> Callable[[], Runner]:
        """Return a function that makes a new Runner with the options of this engine."""
        workers = self.config.max_workers
        setup = RunSetup(
            store=record,
            engine=registry.load(registry.ENGINES, "taskflow")(max_workers=workers),
            environment=ActionEnvironment(plugins=types, cloud=interrupted.no_cloud),
            claimant=this_process.claimant(),
            on_failure=OnFailure(self.config.on_failure),
            listeners=(notifier,),
            heartbeat_interval_s=self.config.heartbeat_interval_s,
            verify_patience_s=verify.patience_s(),
        )
        return partial(Runner, setup)


@cache
def _purge_once() -> None:
    """Delete what is kept of some plans that Watcher has removed; in each process once."""
    if number := purging.purge():
        LOG.info("Deleted what was kept of %d plans that Watcher has removed", number)
