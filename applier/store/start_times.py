# SPDX-License-Identifier: Apache-2.0
"""The part of a store that lets plans wait for a time before they start."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from applier.contracts import HistoryEntry


class StartTimeStore(Protocol):
    """Plans that wait for a time. The clock of the store decides, whatever the others show."""

    def start_plan(
        self,
        uuid: str,
        start_at: datetime | None,
        *,
        now: datetime,
        history: HistoryEntry | None = None,
    ) -> None:
        """Make a plan PENDING that starts at a time, or later; with None, as soon as possible.

        Until then it is no plan that waits for an applier, and cannot be claimed. Of a plan that
        is PENDING, the time is changed. Every other change of its state ends the waiting. Raises
        InvalidTransition and PlanConflict as
        :meth:`applier.store.operators.OperatorStore.move_plan` does, also for a PENDING plan that
        starts at this time already.
        """
