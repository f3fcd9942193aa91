# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that brings plans back, and deletes them for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from applier.contracts import HistoryEntry
from planner.states import PlanState

#: The plan of an entry of the history that is about no single plan, such as a purge.
NO_PLAN = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedPlan:
    """A plan that ended or was removed; ``number`` gives the order of saving."""

    number: int
    uuid: str
    actions: int


class RetentionStore(Protocol):
    """The part of a store that decides how long plans are kept."""

    def undelete_plan(
        self, uuid: str, *, now: datetime, history: HistoryEntry | None = None
    ) -> PlanState:
        """Give a removed plan the state that it had before; return that state.

        Raises PlanNotFound, and PlanConflict for a plan that is not DELETED or whose state before
        is not known.
        """

    def ended_plans(
        self, before: datetime, *, after: int = 0, limit: int | None = None
    ) -> list[EndedPlan]:
        """List the plans that ended, or were removed, before a time; the first saved come first.

        Only those with a number above ``after``, at most ``limit``. Nobody runs them.
        """

    def purge_plans(
        self, uuids: Sequence[str], before: datetime, *, history: HistoryEntry | None = None
    ) -> list[str]:
        """Delete plans for good, with all that belongs to them but their events.

        A plan that was changed after ``before`` is left as it is. Returns the uuids of those that
        this call has deleted: of two that purge a plan at once, one has. The entry of the history
        has the plan :data:`NO_PLAN`; it is written only if a plan was deleted.
        """
