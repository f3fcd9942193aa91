# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that keeps events for subscribers, and its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from applier.contracts import HistoryEntry
from applier.notifications.schema import Event


class EventPage(NamedTuple):
    """Events in the order of their numbers, which is that of the commits of their changes.

    ``last`` is the number after which to continue. All events up to ``deleted`` were deleted.
    ``newest`` is the number of the last event of the store.
    """

    events: Sequence[Event]
    last: int
    deleted: int
    newest: int


class Trouble(NamedTuple):
    """Why an event, and all that wait for it, cannot be delivered.

    ``number`` is the event, ``since`` the time of its first delivery, ``tries`` their number.
    """

    number: int
    since: datetime
    tries: int
    why: str


class Subscription(NamedTuple):
    """Somebody for whom events are recorded.

    ``until`` is set for readers, who count as subscribed until then. A receiver has none: all
    events up to ``delivered`` were delivered to it, except those of the plans in ``held_back``,
    because it refused one of them. ``away`` says why nothing at all can be delivered at present.
    ``holder`` is the process that delivers; ``beats`` counts its heartbeats.
    """

    name: str
    until: datetime | None
    delivered: int
    held_back: Mapping[str, Trouble] = {}
    away: Trouble | None = None
    holder: str | None = None
    beats: int = 0


class DeadEvent(NamedTuple):
    """An event that could not be delivered in time; ``at`` is when that was given up."""

    subscription: str
    event: Event
    why: str
    at: datetime


class EventStore(Protocol):
    """The part of a store that keeps events.

    An event is written in the transaction of the change that it tells of. None is written while
    nobody subscribes.
    """

    def subscribe(self, name: str, *, now: datetime, until: datetime | None = None) -> None:
        """Have all events recorded that come after this call; a subscription stays as it is.

        ``until`` is for readers: it prolongs their subscription. If that had ended before ``now``,
        all events until this call count as deleted, because some were not recorded.
        """

    def unsubscribe(self, name: str, *, history: HistoryEntry | None = None) -> bool:
        """Remove a subscription with its dead events; return False if there is none.

        The entry of the history has the plan :data:`applier.store.retention.NO_PLAN`.
        """

    def subscriptions(self) -> list[Subscription]:
        """List the subscriptions by name."""

    def events(self, after: int = 0, *, limit: int = 100, plan: str | None = None) -> EventPage:
        """List the events with numbers above ``after``, of one plan or of all, oldest first.

        Joins have no events.
        """

    def latest_events(self, *, limit: int, plan: str | None = None) -> list[Event]:
        """List the latest events, of one plan or of all, oldest first."""

    def hold(self, name: str, holder: str, *, seen: Subscription | None) -> Subscription | None:
        """Become the one process that delivers, or write its heartbeat; None if another does.

        ``seen`` is the subscription of a holder that has died: it loses it, unless it has written a
        heartbeat since.
        """

    def record_delivery(self, delivered: Subscription, dead: Sequence[DeadEvent] = ()) -> bool:
        """Write what was delivered, and the events that are given up; counts as a heartbeat.

        Returns False, and writes nothing, if another process is the holder now.
        """

    def dead_events(self, *, limit: int | None = None) -> list[DeadEvent]:
        """List the events that were given up, latest last; with a limit, the latest ones."""

    def delete_events(self, *, before: datetime, now: datetime) -> int:
        """Delete events from before a time that every receiver has got; return their number.

        If nobody subscribes any more, no more events are recorded.
        """
