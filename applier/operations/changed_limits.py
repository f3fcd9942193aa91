# SPDX-License-Identifier: Apache-2.0
"""The limits that operators have set for the run of a plan."""

from __future__ import annotations

from applier.contracts import RequestVerb
from applier.errors import sound_part
from applier.operations.claim import RUNNING
from applier.store import RunStore
from planner.model import ActionPlan


def of_last_run(store: RunStore, plan: ActionPlan) -> dict[str, int]:
    """Return the limits that were set during the last run, by token, and ``max_workers``.

    The latest request counts. A new run begins with the limits of the plan.
    """
    claimant = store.last_claimant(plan.uuid)
    found: dict[str, int] = {}
    if claimant is not None:
        requests, _ = sound_part(lambda: store.requests(plan.uuid, claimant.requests_before))
        for request in requests:
            found |= request.limits if request.verb == RequestVerb.LIMIT else {}
    return found


def holding_now(store: RunStore, plan: ActionPlan) -> dict[str, int]:
    """Return the limits that were set and hold now; none if nobody runs the plan."""
    return of_last_run(store, plan) if plan.state in RUNNING else {}
