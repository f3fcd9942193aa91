# SPDX-License-Identifier: Apache-2.0
"""Subscriptions to events, and the events that they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from applier.notifications.schema import Event


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
