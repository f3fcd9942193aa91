# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that delays the start of plans until a given time."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from applier.contracts import HistoryEntry


class StartTimeStore(Protocol):
    """The part of a store that delays the start of plans until a given time, by its own clock."""

    def start_plan(
        self,
        uuid: str,
        start_at: datetime | None,
        *,
        now: datetime,
        history: HistoryEntry | None = None,
    ) -> None:
        """Make a plan PENDING, to be claimed at ``start_at`` or later; None: as soon as possible.

        Before that time, ``pending_plans`` does not list the plan, and it cannot be claimed. For a
        plan that is PENDING already, only the time is changed. Any later change of its state clears
        the time. Raises InvalidTransition and PlanConflict as
        :meth:`applier.store.operators.OperatorStore.move_plan` does, and InvalidTransition for a
        PENDING plan that has this time already.
        """
