# SPDX-License-Identifier: Apache-2.0
"""Verifies the actions that were running when the applier of a cancelled plan died."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from applier.contracts import Claimant, Report
from applier.engines.environment import ActionEnvironment
from applier.errors import ActionFailed
from applier.run.this_process import this_host
from applier.run.verify import verify_all
from applier.watcher import endings, verify
from applier.watcher.actions import WatcherTypes
from applier.watcher.record import WatcherRecord
from applier.watcher.states import CANCEL_STATES
from planner.states import ActionState


def no_cloud() -> Any:
    """Raise ActionFailed: Watcher's actions make their own connections."""
    raise ActionFailed("Watcher's actions make their own connections")


def found(
    uuid: str, claimant: Claimant, osc: Callable[[], Any] = lambda: None
) -> Mapping[str, Report]:
    """Return a report for each running action of a cancelled plan, by uuid; none for other plans.

    The next run verifies those of other plans. Raises ApplierError, PlannerError.
    """
    if endings.plan_state(uuid) not in CANCEL_STATES:
        return {}
    types = WatcherTypes({}, osc=osc)
    plan = WatcherRecord(types, {}).load_plan(uuid)
    running = [a for a in plan.actions if a.state is ActionState.ONGOING and a.action_type in types]
    reports = verify_all(
        running,
        ActionEnvironment(plugins=types, cloud=no_cloud),
        verify.patience_s(),
        before=claimant,
        host=this_host(),
    ).reports
    return {report.uuid: report for report in reports}
