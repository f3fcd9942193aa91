# SPDX-License-Identifier: Apache-2.0
"""A plan with all that a record knows of it, and the part of stores that takes one in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from applier.contracts import HistoryEntry, Request
from applier.store.runs import Attempt
from planner.model import ActionPlan


class PlanArchive(NamedTuple):
    """A plan in its state, the attempts of its actions by uuid, its history, and its requests."""

    plan: ActionPlan
    attempts: Mapping[str, Sequence[Attempt]]
    history: Sequence[HistoryEntry]
    requests: Sequence[Request]


class ArchiveStore(Protocol):
    """The part of a store that takes in plans of other records."""

    def import_plan(self, archive: PlanArchive, *, history: HistoryEntry) -> None:
        """Save a plan of another record with all that is known of it, or nothing.

        ``history`` is the entry of the import, which follows those of the archive. The durations of
        its attempts do not count here. Raises PlanConflict if a plan of this uuid is saved already.
        """
