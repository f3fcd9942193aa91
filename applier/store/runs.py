# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that runs of plans use; attempts, reservations, durations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from applier.contracts import Claimant, HistoryEntry, Report, Request
from applier.store.plans import LongPlan
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, Outcome, PlanState


class Attempt(NamedTuple):
    """A recorded attempt of an action; ``number`` counts from 1, over all runs of the plan.

    While the attempt runs, it has no values but number and start.
    """

    number: int
    started_at: datetime
    ended_at: datetime | None = None
    state: ActionState | None = None
    outcome: Outcome | None = None
    message: str | None = None
    output: str | None = None
    #: The worker on another machine that carried it out; None if the applier did.
    worker: str | None = None
    #: The process in which it may still be at work, as ``HOST:PID``; None if it is over.
    left_in: str | None = None


class Reservation(NamedTuple):
    """A resource that an ONGOING plan has reserved; the plan that reserved it first holds it."""

    resource: str
    plan: str
    name: str | None
    user: str


#: How many durations of one action type are used by default: the latest ones.
MOST = 500
_NODE = "node:"


class Sample(NamedTuple):
    """How many seconds a successful attempt took, and the size and node of its action, if known.

    ``size`` is as returned by :func:`size_of`, ``node`` as returned by :func:`node_of`.
    ``imported`` is true if the duration was imported from another record.
    """

    seconds: float
    size: str | None = None
    node: str | None = None
    imported: bool = False


def node_of(tokens: Iterable[str]) -> str | None:
    """Return the first node among the tokens of an action: for a migration, the host it leaves.

    >>> node_of(("type:migrate", "instance:web-1", "node:compute-1", "node:compute-2"))
    'compute-1'
    """
    return next((t.removeprefix(_NODE) for t in tokens if t.startswith(_NODE)), None)


def size_of(parameters: Mapping[str, Any]) -> str | None:
    """Return the flavor among the parameters of an action: that which it creates or resizes to.

    >>> size_of({"resource_id": "web-1", "flavor": "m1.large"})
    'm1.large'
    """
    flavor = parameters.get("flavor")
    return flavor if isinstance(flavor, str) else None


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
        action leaves ONGOING. A change from UNKNOWN to ONGOING continues the last attempt: it
        counts none, and deletes that record until the attempt ends again. Raises PlanConflict, and
        writes nothing, if the claim has ended, or if an action is not in the ``old`` state of its
        report.
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
        history: HistoryEntry | None = None,
    ) -> None:
        """Change the state of a claimed plan. The claim ends, unless the state is CANCELLING.

        ``read`` is the number of the last request that the caller has read. If there is a later
        one, RequestsUnread is raised, and nothing is changed. A store with a history writes the
        entry ``history``, such as that of a plan that was paused or cancelled without a request.
        Raises PlanConflict if the claim has ended, InvalidTransition.
        """

    def reserve(self, uuid: str, claim: str, resources: Sequence[str], *, now: datetime) -> None:
        """Reserve resources for an ONGOING plan; earlier reservations take precedence.

        A run calls it once, at its start. A second call replaces the reservations of the first, and
        counts as made later. The reservations are released when the claim ends. If the claimant
        died, they stay until an operator resumes, cancels or pauses the plan. A resource has at
        most 255 characters. Raises PlanConflict if the claim has ended.
        """

    def held_by_others(self, uuid: str) -> list[Reservation]:
        """List the reservations of other plans that block this plan, in the order of resources.

        For each resource, only the first reservation is listed. Raises PlanNotFound.
        """

    def requests(self, plan: str, after: int = 0) -> list[Request]:
        """List the requests for a plan with a number above ``after``, oldest first."""

    def attempts(self, plan: str, action: str) -> list[Attempt]:
        """List all attempts of an action, also a running one, oldest first.

        Raises ActionNotFound.
        """

    def durations(
        self, action_types: Sequence[str], *, before: datetime | None = None, most: int = MOST
    ) -> dict[str, list[Sample]]:
        """Return, by action type, the durations of the latest successful attempts.

        Only attempts count that SUCCEEDED with the outcome ``changed`` or ``created``, under the
        claim that started them, and ended ``before`` a time. The latest come first, then imported
        ones, if the store keeps any; at most ``most`` of each type.
        """


class PlanStore(RunStore, Protocol):
    """A store as the verbs read it that show and explain one plan: the record, or Watcher's."""

    def find_plan(self, reference: str) -> str:
        """Return the uuid of a plan by a reference, such as ``last``; raises PlanNotFound."""

    def load_part(self, uuid: str, reference: str) -> ActionPlan:
        """Return a plan with at least what explains the action of a reference."""

    def long_plan(self, uuid: str) -> LongPlan | None:
        """Return the overview that is kept of a long plan; None without one."""

    def claimant(self, uuid: str) -> Claimant | None:
        """Return the process that runs a plan; None if none does."""

    def history(self, plan: str) -> list[HistoryEntry]:
        """List the entries of a plan, oldest first; none if the store keeps no history."""
