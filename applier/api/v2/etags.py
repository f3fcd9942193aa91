# SPDX-License-Identifier: Apache-2.0
"""Entity tags of plans (the headers ETag and If-Match), which change whenever a plan does."""

from __future__ import annotations

import hashlib

import falcon

from applier.api.errors import Problem
from applier.errors import sound_part
from applier.store import Store
from planner import json_text
from planner.model import ActionPlan

_json = json_text.compact()


def current(store: Store, plan: ActionPlan) -> str:
    """Return the tag of a plan, which was read from the store just now."""
    # Approvals and requests, such as for other limits, change no field of the plan.
    latest, _ = sound_part(lambda: store.history(plan.uuid, limit=1))
    return of(plan, latest[-1].number if latest else 0)


def of(plan: ActionPlan, changes: int) -> str:
    """Return the tag of a plan as the value of the header ETag, in quotes.

    It covers the fields of the plan and those that runs and operators change in its actions.
    ``changes`` is the number of the latest entry in its history.

    >>> plan = ActionPlan(uuid="u", planner="weight", actions=())
    >>> len(of(plan, 1)), of(plan, 1) == of(plan, 2)
    (34, False)
    """
    of_actions = [
        (a.state, a.state_reason, a.outcome, a.attempts, a.status_message, a.started_at, a.ended_at)
        for a in plan.actions
    ]
    covered = _json([plan.head(), [[str(v) for v in values] for values in of_actions], changes])
    return f'"{hashlib.sha256(covered.encode()).hexdigest()[:32]}"'


def require(request: falcon.Request, store: Store, plan: ActionPlan) -> None:
    """Raise Problem (412) if a header If-Match has neither the tag of the plan nor ``*``.

    A weak tag (``W/"..."``) is never that of the plan.
    """
    header = request.get_header("If-Match")
    if header is None or header.strip() == "*":
        return
    now = current(store, plan)
    if not any(
        tag.dumps() == now for tag in request.if_match or () if isinstance(tag, falcon.ETag)
    ):
        text = f"plan {plan.uuid[:8]} was changed since: it is {plan.state} now; look at it again"
        raise Problem(412, "Changed meanwhile", text)
