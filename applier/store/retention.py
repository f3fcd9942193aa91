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
    """A plan that ended or was removed, with the number of its actions.

    Plans that were saved later have a larger ``number``.
    """

    number: int
    uuid: str
    actions: int


class RetentionStore(Protocol):
    """The part of a store that brings removed plans back, and deletes ended plans for good."""

    def undelete_plan(
        self, uuid: str, *, now: datetime, history: HistoryEntry | None = None
    ) -> PlanState:
        """Set a removed plan back to the state that it had before; return that state.

        Raises PlanNotFound. Raises PlanConflict for a plan that is not DELETED.
        """

    def ended_plans(
        self, before: datetime, *, after: int = 0, limit: int | None = None
    ) -> list[EndedPlan]:
        """List the unclaimed plans that ended, or were removed, before a time, first saved first.

        Only those with a number above ``after``, at most ``limit``.
        """

    def purge_plans(
        self, uuids: Sequence[str], before: datetime, *, history: HistoryEntry | None = None
    ) -> list[str]:
        """Delete plans for good, with all their rows except events; return the deleted uuids.

        A plan that has not ended, or was changed after ``before``, is left as it is. If two callers
        purge a plan at once, only one of them gets its uuid. The history entry has the plan
        :data:`NO_PLAN`; it is written only if a plan was deleted.
        """
