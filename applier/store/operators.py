# SPDX-License-Identifier: Apache-2.0
"""The parts of the interface of stores that operators use: changes of plans, and their history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import EllipsisType
from typing import Protocol

from applier.contracts import ActionOf, Claimant, HistoryEntry, Report, Request
from planner.states import ActionState, PlanState


class HistoryStore(Protocol):
    """The part of a store that keeps the history: who changed which plan, when and why.

    Methods that change plans for operators take an entry as ``history``. It is written in the
    transaction of the change: with the change, or not at all, and once if a call is repeated.
    """

    def history(
        self, plan: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[HistoryEntry]:
        """List the entries of a plan, or of all plans, with a number above ``after``, oldest first.

        With a ``limit``, only that many of the latest entries.
        """

    def add_history(self, plan: str, history: HistoryEntry) -> None:
        """Write an entry about a change of a plan that was made elsewhere than in the store.

        Raises PlanNotFound.
        """


class OperatorStore(Protocol):
    """The part of a store that operators use: changes of plans, and requests to running plans.

    ``history`` is the entry of a change in the history, see :class:`HistoryStore`.
    """

    def claimant(self, uuid: str) -> Claimant | None:
        """Return the claimant of a plan, or None if it has none; raises PlanNotFound."""

    def move_plan(
        self,
        uuid: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
        seen: Claimant | None = None,
        reports: Sequence[Report] = (),
        history: HistoryEntry | None = None,
    ) -> None:
        """Change the state of a plan that nobody runs, as an operator requests.

        ``message`` replaces the plan's status message; None clears it. The state CANCELLED also
        cancels the actions that have not started. ``reports`` are the ends of actions that were
        running when their applier died; they are written as by
        :meth:`applier.store.runs.RunStore.commit`. If the new state is CANCELLED or PAUSED, running
        actions without a report become UNKNOWN. ``seen`` is a claimant that has died: its claim
        ends.

        Raises InvalidTransition for a transition that is not in the table of states. Raises
        PlanConflict if somebody else changed the plan or a reported action at the same time, if it
        is claimed by another than ``seen``, or if ``seen`` has written a heartbeat since.
        """

    def resume_plan(
        self,
        uuid: str,
        actions: Sequence[str],
        *,
        now: datetime,
        message: str | None = None,
        seen: Claimant | EllipsisType | None = ...,
        history: HistoryEntry | None = None,
    ) -> None:
        """Make a plan and the named actions PENDING again, all or nothing.

        The plan may be PAUSED, FAILED or CANCELLED, or SUCCEEDED if actions are named. It may also
        be ONGOING or CANCELLING by a claimant that has died, whose claim ends. Outcome, message and
        times of the named actions are cleared; their attempts are kept. ONGOING and UNKNOWN actions
        keep their state: the next claimant verifies them. ``seen`` is the claimant at the time of
        the decision to resume; None means that there was none, and ``...`` accepts any.

        Raises InvalidTransition if the state of the plan or of an action does not allow it,
        ActionNotFound, PlanNotFound. Raises PlanConflict if the plan is claimed by another than
        ``seen``, or if ``seen`` has written a heartbeat since. If two callers resume a plan at
        once, one of them gets one of these errors.
        """

    def remove_damaged_plan(self, uuid: str, *, history: HistoryEntry | None = None) -> None:
        """Delete a damaged plan, with everything that belongs to it except its events.

        Its history is deleted as well; then ``history``, the entry of the removal, is written.
        Raises PlanConflict for a plan that is not damaged, PlanNotFound.
        """

    def skip_action(
        self,
        plan: str,
        action: str,
        *,
        now: datetime,
        message: str,
        history: HistoryEntry | None = None,
    ) -> None:
        """Skip a PENDING action of a plan that nobody runs (RECOMMENDED, PENDING or PAUSED).

        Raises PlanConflict for a plan in another state, ActionNotFound, InvalidTransition.
        """

    def reword_skip(self, plan: str, action: str, *, message: str) -> None:
        """Replace the message of a SKIPPED action.

        Raises PlanConflict for an action in another state, PlanNotFound, ActionNotFound.
        """

    def settle_action(
        self,
        plan: str,
        action: str,
        new: ActionState,
        *,
        now: datetime,
        message: str,
        undoes: ActionOf | None = None,
        history: HistoryEntry | None = None,
    ) -> None:
        """Set the state of an UNKNOWN or FAILED action, in a plan that nobody runs.

        With SUCCEEDED, the outcome becomes ``changed``, with FAILED ``failed``. Attempts are not
        changed. ``undoes`` is the action of another plan that it reverts, which becomes REVERTED or
        REVERT_FAILED. Raises PlanConflict for a plan that is claimed, superseded or removed;
        InvalidTransition for an action in another state or another ``new``; ActionNotFound.
        """

    def add_request(
        self, plan: str, request: Request, *, now: datetime, history: HistoryEntry | None = None
    ) -> None:
        """Save a request for the claimant of a plan, which reads it later.

        Raises PlanConflict if the plan has no claimant, PlanNotFound.
        """
