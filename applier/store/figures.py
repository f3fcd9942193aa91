# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that monitoring uses, and its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple, Protocol


class Heartbeat(NamedTuple):
    """The last heartbeat of a running plan or of a service, and how many plans run there."""

    uuid: str
    host: str
    at: datetime | None
    plans: int = 1


class Outbox(NamedTuple):
    """What a receiver of events has not got: how many events, and the time of the oldest.

    ``held_back`` is the number of plans with an event that it has refused, ``dead`` the number of
    events that were given up.
    """

    subscription: str
    waiting: int
    oldest_at: datetime | None
    held_back: int
    dead: int


class WorkerFigures(NamedTuple):
    """A worker on another machine: its jobs, its places for jobs, and for how long it is silent."""

    name: str
    host: str
    running: int
    places: int
    draining: bool
    silent_s: float


class StoreFigures(NamedTuple):
    """What a store counts for monitoring; states are as they are stored.

    ``actions`` are those of plans that were started and have not ended, by type and state.
    ``are_all_counted`` is false if there are more than the store counts. ``claimants`` have the
    uuid of the plan that they run. ``jobs`` are those of workers on other machines, by state.
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


class FiguresStore(Protocol):
    """The part of a store that monitoring uses; it loads no plan, and takes bounded time."""

    def ping(self) -> None:
        """Return as soon as the store answers; a lost connection is not tried again for long."""

    def figures(self) -> StoreFigures:
        """Count plans and actions, and list the heartbeats."""
