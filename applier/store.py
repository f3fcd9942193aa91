# SPDX-License-Identifier: Apache-2.0
"""The interface of stores, and the values that they hold besides plans.

Methods return on success and raise an error on failure. No method decides what runs next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import EllipsisType
from typing import Protocol

from applier.contracts import Claimant, HistoryEntry, Report, Request
from applier.figures import FiguresStore
from applier.pages import PageStore
from applier.subscriptions import EventStore
from planner.model import ActionPlan
from planner.states import ActionState, Outcome, PlanState


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """A recorded attempt of an action; ``number`` counts from 1, over all runs of the plan."""

    number: int
    started_at: datetime
    ended_at: datetime | None = None
    state: ActionState | None = None
    outcome: Outcome | None = None
    message: str | None = None
    output: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """An applier service that is registered in the store; its ``uuid`` is new at each start.

    ``cloud`` is the name of the cloud that it is configured for; older releases do not say it.
    """

    uuid: str
    host: str
    pid: int
    user: str
    started_at: datetime
    heartbeat_at: datetime
    plans: int = 0
    cloud: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """A resource that an ONGOING plan has reserved; the plan that reserved it first holds it."""

    resource: str
    plan: str
    name: str | None
    user: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanSummary:
    """A row of ``actionplan list``: a plan without its actions, and their number in each state.

    Joins are not counted, because they do nothing. ``cloud`` and ``digest`` are None for plans of
    older releases.
    ``damage`` says why the other fields are missing: the rows of the plan cannot be read. Only then
    ``state`` is None.
    """

    uuid: str
    name: str | None
    planner: str
    state: PlanState | None
    created_at: datetime | None
    updated_at: datetime | None
    actions: Mapping[ActionState, int]
    cloud: str | None = None
    digest: str | None = None
    damage: str | None = None


class RunStore(Protocol):
    """The part of a store that a run uses: runner, recorder, heartbeat and request reader.

    A store of another kind has to implement only this part for plans to be run from it.
    """

    def load_plan(self, uuid: str) -> ActionPlan:
        """Return a plan with its current states; raises PlanNotFound, DamagedRecord."""

    def refresh_plan(self, plan: ActionPlan) -> ActionPlan:
        """Return a plan that was loaded before with the states it has now; raises PlanNotFound.

        The planned fields never change, so they are not read again.
        """

    def claim_plan(self, uuid: str, claimant: Claimant, *, now: datetime) -> str:
        """Change a PENDING plan to ONGOING; return the claim, which every later write must carry.

        If several claimants try at once, exactly one succeeds; the others get PlanConflict. A store
        with a history writes an ``apply`` by the user of the claimant into it.
        """

    def last_claimant(self, uuid: str) -> Claimant | None:
        """Return who ran a plan last, even if nobody runs it now; None if it was never run."""

    def beat(self, uuid: str, claim: str, *, now: datetime) -> None:
        """Record a heartbeat of the claimant; raises PlanConflict if its claim has ended.

        Its commits count as heartbeats, too.
        """

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        """Write the reported ends and starts, in the order of the reports, all or nothing.

        A start sets ``started_at`` and counts an attempt; an end sets ``ended_at``. A change from
        ONGOING to PENDING means that the attempt FAILED and will be retried; the action keeps the
        message, but has no times until the next start. The record of an attempt is written when its
        action leaves ONGOING, and is not changed afterwards. Raises PlanConflict, and writes
        nothing, if the claim has ended, or if an action is not in the ``old`` state of its report.
        """

    def move_claimed(
        self,
        uuid: str,
        claim: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
        read: int | None = None,
    ) -> None:
        """Change the state of a claimed plan. The claim ends, unless the state is CANCELLING.

        ``read`` is the number of the last request that the caller has read. If there is a later
        one, RequestsUnread is raised, and nothing is changed.
        """

    def reserve(self, uuid: str, claim: str, resources: Sequence[str], *, now: datetime) -> None:
        """Reserve resources for an ONGOING plan; earlier reservations take precedence.

        A run calls it once, at its start. A second call replaces the reservations of the first, and
        counts as made later. The reservations are released when the claim ends. If the claimant
        died, they stay until its plan is resumed. A resource has at most 255 characters.
        """

    def held_by_others(self, uuid: str) -> list[Reservation]:
        """List the earlier reservations of other plans that block this plan, by resource."""

    def requests(self, plan: str, after: int = 0) -> list[Request]:
        """List the requests for a plan with a number above ``after``, oldest first."""

    def attempts(self, plan: str, action: str) -> list[Attempt]:
        """List all attempts of an action, also a running one, oldest first.

        Raises ActionNotFound.
        """

    def durations(self, action_types: Sequence[str], *, most: int = 200) -> dict[str, list[float]]:
        """Return, by action type, the durations of the latest successful attempts in seconds.

        Only attempts count that SUCCEEDED with the outcome ``changed`` or ``created``, under the
        claim that started them. The latest come first, at most ``most`` of each type.
        """


class PlanStore(Protocol):
    """The part of a store that saves, finds and lists plans."""

    def save_plan(self, plan: ActionPlan, *, history: HistoryEntry | None = None) -> None:
        """Save a new plan; after a crash, either the whole plan is saved or nothing.

        Raises PlanConflict if a plan of this uuid is saved already, InvalidPlan if two of its
        actions have the same uuid.
        """

    def find_plan(self, reference: str) -> str:
        """Return the uuid of the plan that a person means: a uuid, a unique beginning of one, a
        unique name, or ``last`` (saved last). Removed plans are found by their whole uuid only.
        Raises PlanNotFound."""

    def list_plans(
        self, *, state: PlanState | None = None, name: str | None = None, limit: int | None = None
    ) -> list[PlanSummary]:
        """List plans, the latest saved first; removed ones only if ``state`` is DELETED.

        With a ``name``, only those of exactly this name. Plans that are damaged are listed as such;
        with a ``state`` or a ``name``, those of which that can be read.
        """

    def count_plans(self, *, state: PlanState | None = None) -> int:
        """Return the number of plans that :meth:`list_plans` lists without a limit."""

    def pending_plans(self) -> list[str]:
        """List the uuids of PENDING plans, those that have waited longest first."""

    def output(self, plan: str, action: str) -> str | None:
        """Return the output of the last attempt of an action, or the last 64 KiB of it.

        Raises ActionNotFound. Here and everywhere, the uuid of an action is unique only in its
        plan.
        """


class HistoryStore(Protocol):
    """The part of a store that tells who changed which plan, when and why.

    Methods that change plans for operators take an entry as ``history``. It is written in the
    transaction of the change: with the change, or not at all, and once if a call is repeated.
    """

    def history(
        self, plan: str | None = None, *, after: int = 0, limit: int | None = None
    ) -> list[HistoryEntry]:
        """List the entries of a plan, or of all plans, with a number above ``after``, oldest first.

        With a ``limit``, the latest ones. Plans of older releases may have none.
        """

    def add_history(self, plan: str, history: HistoryEntry) -> None:
        """Write an entry about a change outside of the record; raises PlanNotFound."""


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

        ``message`` replaces the plan's status message; None clears it. CANCELLED also cancels the
        actions that have not started; actions that were running when their applier died become
        UNKNOWN, unless ``reports`` say what became of them, which are written as by :meth:`commit`.
        ``seen`` is a claimant that has died: its claim ends. Raises InvalidTransition for a
        transition that is not in the table of states. Raises PlanConflict if somebody else changed
        the plan or a reported action at the same time, if it is claimed by another than ``seen``,
        or if ``seen`` has written a heartbeat since.
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

        The plan may be PAUSED, FAILED or CANCELLED, or ONGOING or CANCELLING by a claimant that has
        died, whose claim ends. Outcome, message and times of the named actions are cleared; their
        attempts are kept. ONGOING and UNKNOWN actions keep their state: the next claimant verifies
        them. ``seen`` is the claimant at the time of the decision to resume, or None. Raises
        InvalidTransition if the state of the plan or of an action does not allow it. Raises
        PlanConflict if the plan is claimed by another than ``seen``, or if ``seen`` has written a
        heartbeat since. If two callers resume a plan at once, one of them gets one of these errors.
        """

    def remove_damaged_plan(self, uuid: str, *, history: HistoryEntry | None = None) -> None:
        """Delete a plan that is damaged, with everything that belongs to it.

        Its history is deleted as well; of it only the entry of the removal is there afterwards.
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
        history: HistoryEntry | None = None,
    ) -> None:
        """Set the state of an UNKNOWN or FAILED action, in a plan that nobody runs.

        With SUCCEEDED, the outcome becomes ``changed``, with FAILED ``failed``. Attempts are not
        changed. Raises PlanConflict, InvalidTransition, ActionNotFound.
        """

    def add_request(
        self, plan: str, request: Request, *, now: datetime, history: HistoryEntry | None = None
    ) -> None:
        """Save a request for the claimant of a plan; raises PlanConflict if there is none."""


class ServiceStore(Protocol):
    """The part of a store that lists the applier services."""

    def report_service(self, service: Service) -> None:
        """Register a service, or record a heartbeat of it."""

    def remove_service(self, uuid: str) -> None:
        """Remove a service that has ended."""

    def services(self) -> list[Service]:
        """List the registered services, latest heartbeat first."""


class Store(
    RunStore,
    PlanStore,
    PageStore,
    OperatorStore,
    HistoryStore,
    ServiceStore,
    FiguresStore,
    EventStore,
    Protocol,
):
    """Stores plans. Every method is one transaction, which is durable when the method returns.

    Every method raises :class:`applier.errors.DamagedRecord` if rows that it needs are damaged, and
    :class:`applier.errors.StoreError` if the store cannot be reached. It is then unknown whether a
    write was made. Repeating the call, even with another ``now``, never writes twice, except for
    ``save_plan``, ``add_request`` and ``add_history``. No order depends on clocks. The suites of
    :mod:`applier.testing.store_suite` hold for every implementation, part by part.
    """
