# SPDX-License-Identifier: Apache-2.0
"""The figures of a record that monitoring shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple


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

    ``plans`` are counted by state, ``actions`` by type and state: those of plans that were started
    and have not ended. ``are_all_counted`` is false if there are more actions than the store
    counts. ``oldest_pending_at`` is the time of the last change of the plan that has waited longest
    for an applier. ``claimants`` have the uuid of the plan that they run. ``jobs`` are those of
    workers on other machines, by state.
    """

    plans: Mapping[str, int]
    actions: Mapping[tuple[str, str], int]
    are_all_counted: bool
    oldest_pending_at: datetime | None
    claimants: Sequence[Heartbeat]
    services: Sequence[Heartbeat]
    outboxes: Sequence[Outbox] = ()
    workers: Sequence[WorkerFigures] = ()
    jobs: Mapping[str, int] = MappingProxyType({})
