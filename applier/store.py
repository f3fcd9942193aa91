# SPDX-License-Identifier: Apache-2.0
"""The interface of stores, and the values that they hold besides plans.

Methods return on success and raise an error on failure. No method decides what runs next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import EllipsisType
from typing import Any, NamedTuple, Protocol, TypedDict, Unpack

from applier.approvals import ApprovalStore
from applier.archives import ArchiveStore
from applier.contracts import Claimant, HistoryEntry, Report, Request
from applier.figures import FiguresStore
from applier.pages import PageStore
from applier.retention import RetentionStore
from applier.samples import MOST, DurationStore, Sample
from applier.start_times import StartTimeStore
from applier.subscriptions import EventStore
from applier.worker_jobs import WorkerJobStore
from planner.model import ActionPlan
from planner.states import ActionState, Outcome, PlanState


class Attempt(NamedTuple):
    """A recorded attempt of an action; ``number`` counts from 1, over all runs of the plan."""

    number: int
    started_at: datetime
    ended_at: datetime | None = None
    state: ActionState | None = None
    outcome: Outcome | None = None
    message: str | None = None
    output: str | None = None


class Service(NamedTuple):
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


class Reservation(NamedTuple):
    """A resource that an ONGOING plan has reserved; the plan that reserved it first holds it."""

    resource: str
    plan: str
    name: str | None
    user: str


class PlanSummary(NamedTuple):
    """A row of ``actionplan list``: a plan without its actions, and their number in each state.

    Joins are not counted, because they do nothing. ``cloud`` and ``digest`` are None for plans of
    older releases, ``creator`` (who made it) for those whose history does not say it.
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
    creator: str | None = None
    start_at: datetime | None = None
    damage: str | None = None


class PlanFilters(TypedDict, total=False):
    """Which plans are listed: those that pass all filters that are not None.

    Texts are compared exactly. ``since`` and ``until`` are about ``created_at``; ``until`` itself
    is left out.
    """

    state: PlanState | None
    name: str | None
    planner: str | None
    creator: str | None
    since: datetime | None
    until: datetime | None


#: The filters by the time at which a plan was made. With one of them, a list is sorted by it.
TIMES = ("since", "until")


def given(filters: PlanFilters) -> dict[str, Any]:
    """Return the filters that are not None, by name."""
    return {name: value for name, value in filters.items() if value is not None}


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

    def durations(
        self, action_types: Sequence[str], *, most: int = MOST
    ) -> dict[str, list[Sample]]:
        """Return, by action type, the durations of the latest successful attempts.

        Only attempts count that SUCCEEDED with the outcome ``changed`` or ``created``, under the
        claim that started them. The latest come first, then imported ones, if the store keeps any;
        at most ``most`` of each type.
        """


class PlanStore(Protocol):
    """The part of a store that saves, finds and lists plans."""

    def save_plan(self, plan: ActionPlan, *, history: HistoryEntry | None = None) -> None:
        """Save a new plan; after a crash, either the whole plan is saved or nothing.

        Raises PlanConflict if a plan of this uuid is saved already, InvalidPlan if two of its
        actions have the same uuid.
        """

    def find_plan(self, reference: str) -> str:
        """Return the uuid of a plan by its uuid, a unique beginning of that, its unique name, or
        ``last`` (saved last); raises PlanNotFound. Removed plans are found by whole uuids only."""

    def list_plans(
        self, *, limit: int | None = None, **filters: Unpack[PlanFilters]
    ) -> list[PlanSummary]:
        """List plans, the latest saved first; removed ones only if ``state`` is DELETED.

        With ``since`` or ``until``, the latest made come first. Plans that are damaged are listed
        as such; with filters, those of which what is asked can be read.
        """

    def count_plans(self, *, most: int | None = None, **filters: Unpack[PlanFilters]) -> int:
        """Return how many plans :meth:`list_plans` lists without a limit; at most ``most``."""

    def pending_plans(self) -> list[str]:
        """List the uuids of PENDING plans that may start now, the longest wait first."""

    def output(self, plan: str, action: str) -> str | None:
        """Return the output of the last attempt of an action, or the last 64 KiB of it.

        Raises ActionNotFound. Here and everywhere, actions of two plans may have one uuid.
        """

    def all_attempts(self, plan: str, *, most: int) -> dict[str, list[Attempt]]:
        """Return the ended attempts of all actions of a plan by uuid, oldest first.

        Of each output, only the last ``most`` characters are read. Raises PlanNotFound.
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
    RetentionStore,
    DurationStore,
    ApprovalStore,
    ArchiveStore,
    StartTimeStore,
    WorkerJobStore,
    Protocol,
):
    """Stores plans. Every method is one transaction, which is durable when the method returns.

    Every method raises :class:`applier.errors.DamagedRecord` if rows that it needs are damaged, and
    :class:`applier.errors.StoreError` if the store cannot be reached. It is then unknown whether a
    write was made. Repeating the call, even with another ``now``, never writes twice, except for
    ``save_plan``, ``import_plan``, ``add_request``, ``add_history`` and ``import_durations``. No
    order depends on clocks. The suites of :mod:`applier.testing.store_suite` hold for every
    implementation, part by part.
    """
