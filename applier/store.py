# SPDX-License-Identifier: Apache-2.0
"""What the record keeps, and what every store promises.

Success returns, failure raises; no method decides what runs next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import EllipsisType
from typing import Protocol

from applier.contracts import Claimant, Report, Request
from planner.model import ActionPlan
from planner.states import ActionState, Outcome, PlanState


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One try of an action, as it is on record; ``number`` counts from 1, over all runs."""

    number: int
    started_at: datetime
    ended_at: datetime | None = None
    state: ActionState | None = None
    outcome: Outcome | None = None
    message: str | None = None
    output: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """An applier that reports on this record: ``uuid`` is its own from start to end."""

    uuid: str
    host: str
    pid: int
    user: str
    started_at: datetime
    heartbeat_at: datetime
    plans: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """A resource that an ONGOING plan works on, or will: the first to reserve it has it."""

    resource: str
    plan: str
    name: str | None
    user: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanSummary:
    """A line of ``actionplan list``: the plan without its actions, and how many stand where.

    Joins, which do nothing, are not counted.
    """

    uuid: str
    name: str | None
    planner: str
    state: PlanState
    created_at: datetime | None
    updated_at: datetime | None
    actions: Mapping[ActionState, int]


class RunStore(Protocol):
    """What a run asks of the record: its runner, its recorder, its heartbeat, its request reader.

    A record kept elsewhere implements this part to let plans be run from it.
    """

    def load_plan(self, uuid: str) -> ActionPlan:
        """Return a plan with the states it has now; raises PlanNotFound."""

    def refresh_plan(self, plan: ActionPlan) -> ActionPlan:
        """Return a plan that was loaded before with the states it has now; raises PlanNotFound.

        What was planned never changes, so that it need not be read again.
        """

    def claim_plan(self, uuid: str, claimant: Claimant, *, now: datetime) -> str:
        """Turn PENDING into ONGOING; returns a token that every later write must carry.

        Of any number that try at once exactly one succeeds; PlanConflict for the others.
        """

    def beat(self, uuid: str, claim: str, *, now: datetime) -> None:
        """Record a heartbeat of the claimant; raises PlanConflict when its claim has ended."""

    def commit(self, uuid: str, claim: str, reports: Sequence[Report], *, now: datetime) -> None:
        """Write ends and starts in the order of the reports, all or nothing.

        A start sets ``started_at`` and counts an attempt, an end sets ``ended_at``. From ONGOING to
        PENDING the attempt has FAILED, and the action has a message but no times until the next
        start. An attempt stays as its action left ONGOING. Raises PlanConflict, and writes nothing,
        when the claim is not this one's any more or a row is not in the state that its report says.
        """

    def move_claimed(
        self,
        uuid: str,
        claim: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
    ) -> None:
        """Change the state of a plan that this claim runs; it ends unless that is CANCELLING."""

    def reserve(self, uuid: str, claim: str, resources: Sequence[str], *, now: datetime) -> None:
        """Reserve resources for an ONGOING plan, behind whoever reserved them before.

        All at once, when the plan begins; a second call replaces the first, and goes to the back.
        They are released when the claim ends; those of a claimant that died stay until its plan
        is resumed. A resource has at most 255 characters.
        """

    def held_by_others(self, uuid: str) -> list[Reservation]:
        """List which of a plan's resources another reserved first and still has, by resource."""

    def requests(self, plan: str, after: int = 0) -> list[Request]:
        """List the requests with a number above ``after``, oldest first."""

    def attempts(self, plan: str, action: str) -> list[Attempt]:
        """List all tries of an action, oldest first, also one that runs; raises ActionNotFound."""

    def durations(self, action_types: Sequence[str], *, most: int = 200) -> dict[str, list[float]]:
        """Return, by action type, the seconds that the last successful attempts took.

        SUCCEEDED, ``changed`` or ``created``, under the claim that started them; those that ended
        last first, at most ``most``.
        """


class PlanStore(Protocol):
    """Plans that are kept, found and listed."""

    def save_plan(self, plan: ActionPlan) -> None:
        """Keep a whole new plan; a crash leaves all of it or none.

        A uuid is saved once: PlanConflict. Raises InvalidPlan if two of its actions have one uuid.
        """

    def find_plan(self, reference: str) -> str:
        """Return the uuid of the plan that a person means: a uuid, a unique beginning of one, a
        unique name, or ``last`` (saved last). Removed plans are found by their whole uuid only.
        Raises PlanNotFound."""

    def list_plans(
        self, *, state: PlanState | None = None, limit: int | None = None
    ) -> list[PlanSummary]:
        """List plans, saved last first; removed ones only when ``state`` asks for them."""

    def count_plans(self, *, state: PlanState | None = None) -> int:
        """Return how many plans :meth:`list_plans` lists without a limit."""

    def pending_plans(self) -> list[str]:
        """List the uuids of PENDING plans, those that wait longest first."""

    def output(self, plan: str, action: str) -> str | None:
        """Return what the last attempt of an action printed: the last 64 KiB.

        Raises ActionNotFound. An action is known by its uuid within its plan, here as everywhere.
        """


class OperatorStore(Protocol):
    """What operators change: plans that nobody runs, and requests to those that somebody runs."""

    def claimant(self, uuid: str) -> Claimant | None:
        """Return who runs a plan now, or None; raises PlanNotFound."""

    def move_plan(
        self,
        uuid: str,
        new: PlanState,
        *,
        now: datetime,
        message: str | None = None,
        seen: Claimant | None = None,
    ) -> None:
        """Change a plan's state for an operator, if the table of states has the row.

        ``message`` becomes the plan's status message, or clears it. CANCELLED also cancels the
        actions that have not started; what ran when its applier died becomes UNKNOWN. Of two at
        once, one gets PlanConflict, as does who moves a plan that somebody runs; a change that is
        not a row raises InvalidTransition. ``seen`` is a claimant that is gone, whose claim is void
        from here on: PlanConflict if another runs the plan by now, or that one was heard of since.
        """

    def resume_plan(
        self,
        uuid: str,
        actions: Sequence[str],
        *,
        now: datetime,
        message: str | None = None,
        seen: Claimant | EllipsisType | None = ...,
    ) -> None:
        """Make a plan PENDING again, and the named actions with it, all or nothing.

        From PAUSED, FAILED, CANCELLED, ONGOING or CANCELLING (of a claimant that is gone: whose
        claim is void from here on). The actions lose outcome, message and times; their attempts
        stay. Those that are ONGOING or UNKNOWN stay so: the next claimant verifies them. Raises
        InvalidTransition for a plan or action that may not, PlanConflict or it of two at once.
        ``seen`` is who ran it, None for nobody, when somebody decided to resume it: PlanConflict if
        another does by now, or that one was heard of since.
        """

    def skip_action(self, plan: str, action: str, *, now: datetime, message: str) -> None:
        """Skip a PENDING action of a plan that nobody runs (RECOMMENDED, PENDING or PAUSED).

        Raises PlanConflict for a plan in another state, ActionNotFound, InvalidTransition.
        """

    def settle_action(
        self, plan: str, action: str, new: ActionState, *, now: datetime, message: str
    ) -> None:
        """Settle an UNKNOWN or FAILED action as an operator says, in a plan that nobody runs.

        SUCCEEDED gets the outcome ``changed``, FAILED ``failed``; its attempts stay as they were.
        Raises PlanConflict, InvalidTransition, ActionNotFound.
        """

    def add_request(self, plan: str, request: Request, *, now: datetime) -> None:
        """Keep a request for a plan's claimant; PlanConflict when nobody runs the plan."""


class ServiceStore(Protocol):
    """The appliers that report on this record."""

    def report_service(self, service: Service) -> None:
        """Record that a service lives: its first report and every heartbeat."""

    def remove_service(self, uuid: str) -> None:
        """Remove the record of a service that ended."""

    def services(self) -> list[Service]:
        """List the services that reported, latest heartbeat first."""


class Store(RunStore, PlanStore, OperatorStore, ServiceStore, Protocol):
    """Keeps plans. Every method is one transaction: after it returns, a crash loses nothing.

    Raises :class:`applier.errors.StoreError` when the record cannot be reached. Nobody knows then
    whether a write was made; the same call made again, ``now`` aside, makes it once (``save_plan``
    and ``add_request`` excepted). No clock decides about any order. The tests in
    :mod:`applier.testing.store_suite` hold for every implementation, part by part.
    """
