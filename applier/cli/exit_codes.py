# SPDX-License-Identifier: Apache-2.0
"""The exit codes of the program: 0 is done. Those of signals are in ``applier.console_scripts``."""

from __future__ import annotations

from planner.plan.states import PlanState

REFUSED, USAGE, FAILED, OUT_OF_DATE, PAUSED = 1, 2, 3, 4, 5
#: What a run exits with, by the state of its plan.
OF_PLANS = {
    PlanState.SUCCEEDED: 0,
    PlanState.FAILED: FAILED,
    PlanState.PAUSED: PAUSED,
    PlanState.CANCELLED: PAUSED,
}
