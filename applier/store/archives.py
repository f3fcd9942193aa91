# SPDX-License-Identifier: Apache-2.0
"""The archive of a plan, and the part of the interface of stores that imports archives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from applier.contracts import HistoryEntry, Request
from applier.store.runs import Attempt
from planner.model import ActionPlan


class PlanArchive(NamedTuple):
    """A plan with its states, the attempts by uuid of action, the history, and the requests."""

    plan: ActionPlan
    attempts: Mapping[str, Sequence[Attempt]]
    history: Sequence[HistoryEntry]
    requests: Sequence[Request]


class ArchiveStore(Protocol):
    """The part of a store that imports plans from other records."""

    def import_plan(self, archive: PlanArchive, *, history: HistoryEntry) -> None:
        """Save a plan of another record with its attempts, history and requests, all or nothing.

        ``history`` is the entry of the import, which follows those of the archive. ``durations``
        never returns the durations of imported attempts. Raises PlanConflict if a plan of this uuid
        is saved already, InvalidPlan if two of its actions have the same uuid.
        """
