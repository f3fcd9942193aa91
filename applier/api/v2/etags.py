# SPDX-License-Identifier: Apache-2.0
"""Entity tags of plans (the headers ETag and If-Match), which change whenever a plan does."""

from __future__ import annotations

import hashlib
from datetime import datetime

import falcon

from applier.api.errors import Problem
from planner import json_text
from planner.model import ActionPlan

_json = json_text.compact()


def of(plan: ActionPlan) -> str:
    """Return the tag of a plan as the value of the header ETag, in quotes.

    Planned fields never change, so it covers only the fields that runs and operators change.

    >>> of(ActionPlan(uuid="u", planner="weight", actions=()))[:9]
    '"caa5468f'
    """
    of_actions = [
        (a.state, a.outcome, a.attempts, a.status_message, _text(a.started_at), _text(a.ended_at))
        for a in plan.actions
    ]
    starts = [plan.start_at.isoformat()] if plan.start_at else []
    covered = _json([plan.uuid, plan.state, plan.status_message, of_actions, *starts])
    return f'"{hashlib.sha256(covered.encode()).hexdigest()[:32]}"'


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def require(request: falcon.Request, plan: ActionPlan) -> None:
    """Raise Problem (412) if a header If-Match has neither the tag of the plan nor ``*``."""
    given = request.if_match
    if not given or "*" in given:
        return
    now = of(plan)
    if all(f'"{tag}"' != now for tag in given):
        text = f"plan {plan.uuid[:8]} was changed since: it is {plan.state} now; look at it again"
        raise Problem(412, "Changed meanwhile", text)
