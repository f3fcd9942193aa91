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

    ``last`` is the number to pass as ``after`` for the next page. All events with numbers up to
    ``deleted`` were deleted. ``newest`` is the number of the last event of the store. ``damaged``
    has a sentence about each event that was left out, if whoever has read the page leaves out any.
    """

    events: Sequence[Event]
    last: int
    deleted: int
    newest: int
    damaged: Sequence[str] = ()


class Trouble(NamedTuple):
    """The reason why an event, and all events that wait for it, could not be delivered yet.

    ``number`` is that of the event, ``since`` the time of the first try, ``tries`` the number of
    failed tries. With 0 tries, ``why`` is empty: the event only waits for its first try.
    """

    number: int
    since: datetime
    tries: int
    why: str


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


class EventStore(Protocol):
    """The part of a store that keeps events.

    An event is written in the transaction of the change that it describes. None is written while
    there is no subscription.
    """

    def subscribe(self, name: str, *, now: datetime, until: datetime | None = None) -> None:
        """Subscribe: record all events after this call. An existing subscription is kept.

        ``until`` is for readers: it prolongs their subscription, and never shortens it. A
        subscription that ended before ``now`` is replaced by a new one. If there is no other, all
        earlier events are deleted, because some were not recorded.
        """

    def unsubscribe(self, name: str, *, history: HistoryEntry | None = None) -> bool:
        """Remove a subscription with its dead events; return False if there is none.

        The history entry has the plan :data:`applier.store.retention.NO_PLAN`.
        """

    def subscriptions(self) -> list[Subscription]:
        """List the subscriptions by name."""

    def events_waiting(self, subscription: Subscription) -> int:
        """Return how many events a receiver has not got yet, with those of plans held back.

        Events of joins, which are never delivered, count as well.
        """

    def events(self, after: int = 0, *, limit: int = 100, plan: str | None = None) -> EventPage:
        """List the events with numbers above ``after``, of one plan or of all, oldest first.

        Events of joins are left out.
        """

    def latest_events(self, *, limit: int, plan: str | None = None) -> list[Event]:
        """List the latest ``limit`` events, of one plan or of all, oldest first, without joins."""

    def hold(self, name: str, holder: str, *, seen: Subscription | None) -> Subscription | None:
        """Make ``holder`` the one process that delivers to a receiver, or write its heartbeat.

        Returns the subscription, or None if another process is the holder. ``seen`` is the
        subscription as read earlier, if its holder is presumed dead: the holder is replaced, unless
        it has written a heartbeat since.
        """

    def record_delivery(self, delivered: Subscription, dead: Sequence[DeadEvent] = ()) -> bool:
        """Write the progress of a delivery, and new dead events; this counts as a heartbeat.

        Returns False, and writes nothing, if another process is the holder now.
        """

    def dead_events(self, *, limit: int | None = None) -> list[DeadEvent]:
        """List the dead events, latest last; with a limit, only that many of the latest."""

    def delete_events(self, *, before: datetime, now: datetime) -> int:
        """Delete the events before a time that were delivered to every receiver.

        Returns how many were deleted. If no subscription is left at ``now``, running plans stop
        writing events.
        """
