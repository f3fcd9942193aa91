# SPDX-License-Identifier: Apache-2.0
"""Tags that change whenever a plan does."""

from __future__ import annotations

import hashlib

import falcon

from applier.api.errors import Problem
from planner.model import ActionPlan


def of(plan: ActionPlan) -> str:
    """Return the tag of a plan, as the header ETag has it.

    What was planned never changes, so only what runs and operators change is covered.

    >>> of(ActionPlan(uuid="u", planner="weight", actions=()))[:9]
    '"98c35ada'
    """
    covered = hashlib.sha256(f"{plan.uuid} {plan.state} {plan.status_message}".encode())
    for action in plan.actions:
        state, outcome, message = str(action.state), str(action.outcome), str(action.status_message)
        ended = (state, outcome, str(action.attempts), message, action.started_at, action.ended_at)
        covered.update(repr(ended).encode())
    return f'"{covered.hexdigest()[:32]}"'


def require(request: falcon.Request, plan: ActionPlan) -> None:
    """Raise a problem if the header If-Match names another state of the plan."""
    given = request.if_match
    if not given or "*" in given:
        return
    now = of(plan)
    if all(f'"{tag}"' != now for tag in given):
        text = f"plan {plan.uuid[:8]} was changed since: it is {plan.state} now; look at it again"
        raise Problem(412, "Changed meanwhile", text)
