# SPDX-License-Identifier: Apache-2.0
"""The colours of states, the columns of a recap, and the width of output."""

from __future__ import annotations

from datetime import datetime

from planner.model import ActionPlan
from planner.states import ActionState

#: Width of output that is not written to a terminal.
WIDTH = 100
#: Colour of each state, which is also written as a word.
STYLES = {
    ActionState.SUCCEEDED: "green",
    ActionState.SKIPPED: "cyan",
    ActionState.ONGOING: "bold",
    ActionState.FAILED: "bold red",
    ActionState.UNKNOWN: "bold red",
    ActionState.REVERT_FAILED: "bold red",
    ActionState.FAILED_DEPENDENCIES: "red",
    ActionState.CANCELLED: "yellow",
}
#: Columns of a recap, in order.
RESULTS = ("changed", "already", "skipped", "failed", "in doubt", "not run")


def ages_s(plan: ActionPlan, at: datetime) -> dict[str, float]:
    """Return, for each ONGOING action by uuid, the seconds from its start to a time."""
    running = (a for a in plan.actions if a.state is ActionState.ONGOING)
    return {a.uuid: age_s(a.started_at, at) for a in running if a.started_at is not None}


def age_s(then: datetime, at: datetime) -> float:
    """Return the seconds from one time to another; 0 if a clock is behind that of the applier."""
    return max((at - then).total_seconds(), 0.0)
