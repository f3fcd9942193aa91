# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that keeps approvals of plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from applier.contracts import Approval, HistoryEntry


class GivenApprovals(NamedTuple):
    """The approvals of a plan in their order, and who made the plan, if that is known.

    ``importers`` took it in from a document, which says who its creator is.
    """

    creator: str | None
    approvals: Sequence[Approval]
    importers: frozenset[str] = frozenset()

    @property
    def makers(self) -> frozenset[str | None]:
        """Who is no other than the creator of the plan, as far as the record can tell."""
        return self.importers | {self.creator}


class ApprovalStore(Protocol):
    """The part of a store that keeps approvals."""

    def approve_plan(
        self, uuid: str, approval: Approval, *, history: HistoryEntry | None = None
    ) -> None:
        """Keep an approval of a plan that nobody runs, with its event.

        A second one of the same content by the same person replaces the first. Raises PlanConflict
        for a plan in another state, PlanNotFound.
        """

    def approvals(self, uuid: str) -> GivenApprovals:
        """Return the approvals of a plan, those that are void as well; raises PlanNotFound."""
