# SPDX-License-Identifier: Apache-2.0
"""Approvals of plans, and the part of the interface of stores that keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from applier.contracts import HistoryEntry


class Approval(NamedTuple):
    """Somebody said that a plan may run.

    ``content`` is what was approved: :func:`applier.guarding.content.approvable`. It is void for a
    plan with another.
    """

    who: str
    at: datetime
    content: str
    why: str | None = None
    project: str | None = None


class GivenApprovals(NamedTuple):
    """The approvals of a plan in their order, and who made the plan, if that is known."""

    creator: str | None
    approvals: Sequence[Approval]


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
