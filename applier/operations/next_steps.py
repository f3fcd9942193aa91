# SPDX-License-Identifier: Apache-2.0
"""Suggests the commands that continue a plan that has stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from applier.wording import one_line
from planner.model import ActionPlan
from planner.states import ActionState, PlanState

#: The maximum number of actions in doubt for which a command is suggested.
_MOST_IN_DOUBT = 3
#: The states to look at if a plan failed, the most important first.
_WORST_FIRST = (ActionState.FAILED, ActionState.UNKNOWN, ActionState.CANCELLED)


def next_steps(plan: ActionPlan) -> Iterator[str]:
    """Yield the commands that continue a plan, those for actions in doubt first."""
    short = plan.uuid[:8]
    states = Counter(a.state for a in plan.actions)
    for action in [a for a in plan.actions if a.state is ActionState.UNKNOWN][:_MOST_IN_DOUBT]:
        settle = f"{one_line(action.label)} --state succeeded|failed --reason TEXT"
        yield f"Check, then set its state: actionplan action set {short} {settle}"
    if plan.state is PlanState.PAUSED:
        tried_again = states[ActionState.FAILED] + states[ActionState.UNKNOWN]
        if tried_again:
            yield f"Run failed actions again, and continue: actionplan resume {short}"
        yield f"Continue{' with the rest' if tried_again else ''}: actionplan apply {short}"
        yield f"Or cancel it: actionplan cancel {short}"
    if plan.state in (PlanState.FAILED, PlanState.CANCELLED):
        ended = [s for s in _WORST_FIRST if states[s]] or [ActionState.FAILED]
        yield f"For details: actionplan action list {short} --state {ended[0]}"
        yield f"Run failed actions again: actionplan resume {short}"
