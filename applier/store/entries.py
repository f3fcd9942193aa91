# SPDX-License-Identifier: Apache-2.0
"""What the record keeps beside plans and runs: approvals, answers, services, events, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from applier.contracts import Approval, HistoryEntry, Request
from applier.notifications.schema import Event
from applier.store.runs import Attempt
from planner.plan.model import ActionPlan


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


class Answer(NamedTuple):
    """A change that was made once, and what its request was answered with.

    ``plan`` is that of its entry in the history. ``text`` is None while the answer is not known,
    and stays so if the process that made the change died before it had answered.
    """

    digest: str
    plan: str
    request_id: str
    at: datetime
    text: str | None


class PlanArchive(NamedTuple):
    """A plan with its states, the attempts by uuid of action, the history, and the requests."""

    plan: ActionPlan
    attempts: Mapping[str, Sequence[Attempt]]
    history: Sequence[HistoryEntry]
    requests: Sequence[Request]


#: The plan of an entry of the history that is about no single plan, such as a purge.
NO_PLAN = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, kw_only=True, slots=True)
class EndedPlan:
    """A plan that ended or was removed, with the number of its actions.

    Plans that were saved later have a larger ``number``.
    """

    number: int
    uuid: str
    actions: int


class Service(NamedTuple):
    """An applier service that is registered in the store; its ``uuid`` is new at each start.

    ``cloud`` is the name of the cloud that it is configured for, ``plans`` the number
    of plans that it runs.
    """

    uuid: str
    host: str
    pid: int
    user: str
    started_at: datetime
    heartbeat_at: datetime
    cloud: str
    plans: int = 0


class EventPage(NamedTuple):
    """Events in the order of their numbers, which is that of the commits of their changes.

    ``last`` is the number to pass as ``after`` for the next page. All events with numbers up to
    ``deleted`` were deleted. ``newest`` is the number of the last event of the store.
    """

    events: Sequence[Event]
    last: int
    deleted: int
    newest: int


class Trouble(NamedTuple):
    """The reason why an event, and all events that wait for it, could not be delivered yet.

    ``number`` is that of the event, ``since`` the time of the first try, ``tries`` the number of
    failed tries. With 0 tries, ``why`` is empty: the event only waits for its first try.
    """

    number: int
    since: datetime
    tries: int
    why: str


#: The name of the subscription that all readers share.
READERS = "readers"


class Subscription(NamedTuple):
    """A subscription, for which events are recorded: that of a receiver, or that of readers.

    A service delivers events to a receiver; readers list them, and are subscribed until ``until``,
    which is None for a receiver. All events up to ``delivered`` were delivered to the receiver,
    except those of the plans in ``held_back``, by uuid, because it refused one of them. ``away`` is
    the reason if the receiver cannot be reached at present. ``holder`` is the uuid of the process
    that delivers; ``beats`` counts its heartbeats.
    """

    name: str
    until: datetime | None
    delivered: int
    held_back: Mapping[str, Trouble] = {}
    away: Trouble | None = None
    holder: str | None = None
    beats: int = 0


class DeadEvent(NamedTuple):
    """An event that could not be delivered in time; ``at`` is the time of giving it up."""

    subscription: str
    event: Event
    why: str
    at: datetime


class Heartbeat(NamedTuple):
    """The last heartbeat of a running plan or of a service, and how many plans run there.

    ``uuid`` is that of the plan or of the service. ``at`` is None if no heartbeat was recorded.
    """

    uuid: str
    host: str
    at: datetime | None
    plans: int = 1


class Outbox(NamedTuple):
    """Counts of the events that were not delivered to a receiver.

    ``waiting`` is the number of events after the last delivered one. ``held_back`` is the number of
    plans with an event that the receiver has refused; their later events wait as well, and are not
    counted in ``waiting``. ``oldest_at`` is the time of the oldest event of both kinds, or None.
    ``dead`` is the number of events that are not delivered any more.
    """

    subscription: str
    waiting: int
    oldest_at: datetime | None
    held_back: int
    dead: int


class WorkerFigures(NamedTuple):
    """A worker on another machine, with its number of running jobs.

    ``places`` is how many jobs it carries out at once, ``silent_s`` the seconds since its last
    report.
    """

    name: str
    host: str
    running: int
    places: int
    draining: bool
    silent_s: float


class StoreFigures(NamedTuple):
    """The counts and heartbeats that a store reads for monitoring.

    ``plans`` are counted by state; ``in_doubt`` are those of which nobody knows whether an action
    was done, running ones included. ``actions`` are counted by type and state: those of plans that
    were started and have not ended. ``are_all_counted`` is false if there are more actions than the
    store counts. ``oldest_pending_at`` is the time of the last change of the plan that has waited
    longest for an applier. ``claimants`` have the uuid of the plan that they run. ``jobs`` are
    those of workers on other machines, by state.
    """

    plans: Mapping[str, int]
    in_doubt: int
    actions: Mapping[tuple[str, str], int]
    are_all_counted: bool
    oldest_pending_at: datetime | None
    claimants: Sequence[Heartbeat]
    services: Sequence[Heartbeat]
    outboxes: Sequence[Outbox] = ()
    workers: Sequence[WorkerFigures] = ()
    jobs: Mapping[str, int] = MappingProxyType({})
