# SPDX-License-Identifier: Apache-2.0
"""Records that the claimant of a plan is alive, even while its engine is busy."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from applier.engines import Events
from applier.errors import PlanConflict, StoreError
from applier.run.periodic import Periodic
from applier.store import RunStore

LOG = logging.getLogger(__name__)


def heartbeat(
    store: RunStore,
    plan: str,
    claim: str,
    *,
    events: Events,
    clock: Callable[[], datetime],
    interval_s: float,
) -> Periodic:
    """Return a context manager that writes the heartbeats of one claim.

    If the claim is lost, the PlanConflict is put into ``events``, and no more heartbeats are
    written. If the store does not answer, the next heartbeat tries again.
    """

    def beat() -> bool:
        try:
            store.beat(plan, claim, now=clock())
        except PlanConflict as lost:
            events.put(lost)
            return False
        except StoreError as reason:
            # The commits of the engine decide whether the run can continue.
            LOG.warning("Plan %s: no heartbeat could be written: %s", plan, reason)
        return True

    return Periodic("heartbeat", interval_s, beat)
