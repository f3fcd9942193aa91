# SPDX-License-Identifier: Apache-2.0
"""Records that the claimant of a plan is alive, also while its engine is busy."""

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
    """Return the heartbeat of one claim, a context manager.

    When the claim is lost, the heartbeat puts the PlanConflict into ``events`` and ends: nothing
    more may be written then. A store that does not answer is tried again at the next beat.
    """

    def beat() -> bool:
        try:
            store.beat(plan, claim, now=clock())
        except PlanConflict as lost:
            events.put(lost)
            return False
        except StoreError as reason:
            # The commits of the engine decide whether the plan can go on.
            LOG.warning("Plan %s: no heartbeat could be written: %s", plan, reason)
        return True

    return Periodic("heartbeat", interval_s, beat)
