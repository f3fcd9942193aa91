# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that keeps approvals of plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from applier.contracts import Approval, HistoryEntry


class GivenApprovals(NamedTuple):
    """The approvals of a plan, oldest first, with its creator and the users who imported it.

    ``creator`` is None if the record has none. ``importers`` matter because the imported document
    itself names the creator.
    """

    creator: str | None
    approvals: Sequence[Approval]
    importers: frozenset[str] = frozenset()

    @property
    def makers(self) -> frozenset[str | None]:
        """The users whose approval does not count as that of another person than the creator.

        These are the creator (None if unknown) and the importers.
        """
        return self.importers | {self.creator}


class ApprovalStore(Protocol):
    """The part of a store that keeps approvals of plans."""

    def approve_plan(
        self, uuid: str, approval: Approval, *, history: HistoryEntry | None = None
    ) -> None:
        """Save an approval of a plan that nobody runs, and write its event.

        A second approval of the same content by the same person replaces the first. Raises
        PlanConflict for a plan that is claimed, superseded or removed; PlanNotFound.
        """

    def approvals(self, uuid: str) -> GivenApprovals:
        """Return the approvals of a plan, including void ones; raises PlanNotFound.

        An approval is void if the content of the plan has changed since.
        """
