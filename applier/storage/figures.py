# SPDX-License-Identifier: Apache-2.0
"""Counts the rows of the record for monitoring, in the database; most counts are bounded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.columns import Count, is_due, time_in
from applier.storage.compiled import Deferred, Row, word, words
from applier.storage.database import Database
from applier.storage.event_rows import needed_from, subscription_of
from applier.storage.event_statements import RUNNING, SUBSCRIPTIONS
from applier.storage.kept_events import waiting
from applier.storage.tables import (
    action_states,
    dead_events,
    events,
    plans,
    services,
    worker_jobs,
    workers,
)
from applier.storage.transactions import Transaction
from applier.store.figures import Heartbeat, Outbox, StoreFigures, WorkerFigures
from planner.states import PlanState

#: The states of plans whose actions are counted: those that were started and have not ended.
UNDER_WAY = (PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING, PlanState.PAUSED)
#: The most rows of actions or jobs that are counted, and the most claimants, services or workers
#: that are listed.
MOST_ACTIONS, MOST_HEARTBEATS = 100_000, 1000

#: Reads at most one row: it only finds out whether the table of plans can be read.
PING = Deferred(lambda: sa.select(plans.c.number).limit(1))
PLANS = Deferred(
    lambda: sa.select(plans.c.state, sa.func.count().label("number")).group_by(plans.c.state)
)
#: The number of actions of the plans under way, by type and state.
ACTIONS = Deferred(lambda: _counts(_some_actions()))
#: The plan that has waited longest for an applier: the first of
#: :data:`applier.storage.queue_statements.PENDING_PLANS`.
OLDEST_PENDING = Deferred(
    lambda: (
        sa.select(plans.c.updated_at, plans.c.created_at)
        .where(plans.c.state == word(PlanState.PENDING), is_due(plans.c.start_at))
        .order_by(sa.func.coalesce(plans.c.queued, sa.literal_column("0")), plans.c.number)
        .limit(1)
    )
)
CLAIMANTS = Deferred(
    lambda: (
        sa.select(plans.c.uuid, plans.c.claimant_host.label("host"), plans.c.heartbeat_at)
        .where(
            plans.c.state.in_(words(RUNNING)),
            plans.c.claim.is_not(None),
        )
        .order_by(plans.c.number.desc())
        .limit(bindparam("most"))
    )
)
SERVICES = Deferred(
    lambda: (
        sa.select(services.c.uuid, services.c.host, services.c.heartbeat_at, services.c.plans)
        .order_by(services.c.heartbeat_at.desc())
        .limit(bindparam("most"))
    )
)
#: The workers on other machines, latest report first.
WORKERS = Deferred(
    lambda: (
        sa.select(
            *(workers.c[key] for key in ("name", "host", "running", "places", "draining")),
            workers.c.heard_at,
            time_in().label("now"),
        )
        .order_by(workers.c.heard_at.desc())
        .limit(bindparam("most"))
    )
)
#: The number of their jobs by state. A job has a row while its action is ONGOING.
JOBS = Deferred(lambda: _counts(sa.select(worker_jobs.c.state).limit(bindparam("most")).subquery()))
#: The first event from a number on.
OLDEST_EVENT = Deferred(
    lambda: (
        sa.select(events.c.at)
        .where(events.c.number >= bindparam("first", type_=Count))
        .order_by(events.c.number)
        .limit(1)
    )
)
DEAD = Deferred(
    lambda: sa.select(dead_events.c.subscription, sa.func.count().label("number")).group_by(
        dead_events.c.subscription
    )
)


def _some_actions() -> sa.Subquery:
    """Select actions of the plans under way; without an order, so that nothing is sorted."""
    return (
        sa.select(action_states.c.action_type, action_states.c.state)
        .select_from(plans)
        .join(action_states, action_states.c.plan == plans.c.uuid)
        .where(plans.c.state.in_(words(UNDER_WAY)))
        .limit(bindparam("most"))
        .subquery()
    )


def _counts(some: sa.Subquery) -> sa.Select[Any]:
    number = sa.func.count().label("number")
    return sa.select(*some.c, number).group_by(*some.c)


class RecordFigures:
    """The methods of the store that monitoring uses."""

    _database: Database

    def ping(self) -> None:
        """See :meth:`applier.store.figures.FiguresStore.ping`."""

        def read() -> None:
            with self._database.read() as transaction:
                transaction.read(PING)

        self._database.tried(read, lost_too=False)

    def figures(self) -> StoreFigures:
        """See :meth:`applier.store.figures.FiguresStore.figures`."""

        def read() -> StoreFigures:
            with self._database.read() as transaction:
                states = transaction.read(PLANS)
                actions = transaction.read(ACTIONS, {"most": MOST_ACTIONS})
                oldest = transaction.read(OLDEST_PENDING)
                claimants = transaction.read(CLAIMANTS, {"most": MOST_HEARTBEATS})
                reported = transaction.read(SERVICES, {"most": MOST_HEARTBEATS})
                outboxes = list(_outboxes(transaction))
                registered = transaction.read(WORKERS, {"most": MOST_HEARTBEATS})
                jobs = transaction.read(JOBS, {"most": MOST_ACTIONS})
            return StoreFigures(
                plans={row["state"]: row["number"] for row in states},
                actions={(r["action_type"], r["state"]): r["number"] for r in actions},
                are_all_counted=sum(row["number"] for row in actions) < MOST_ACTIONS,
                oldest_pending_at=_since(oldest[0]) if oldest else None,
                claimants=tuple(map(_heartbeat, claimants)),
                services=tuple(map(_heartbeat, reported)),
                outboxes=tuple(outboxes),
                workers=tuple(map(_worker, registered)),
                jobs={row["state"]: row["number"] for row in jobs},
            )

        return self._database.tried(read, lost_too=False)


def _outboxes(transaction: Transaction) -> Iterator[Outbox]:
    """Yield the outbox of each receiver; ``waiting`` includes events of joins, never delivered."""
    receivers = map(subscription_of, transaction.read(SUBSCRIPTIONS))
    dead = {row["subscription"]: row["number"] for row in transaction.read(DEAD)}
    for receiver in receivers:
        if receiver.until is None:
            oldest = transaction.read(OLDEST_EVENT, {"first": needed_from(receiver)})
            yield Outbox(
                subscription=receiver.name,
                waiting=waiting(transaction, receiver),
                oldest_at=oldest[0]["at"] if oldest else None,
                held_back=len(receiver.held_back),
                dead=dead.get(receiver.name, 0),
            )


def _since(row: Row) -> datetime | None:
    since: datetime | None = row["updated_at"] or row["created_at"]
    return since


def _heartbeat(row: Row) -> Heartbeat:
    return Heartbeat(
        uuid=row["uuid"],
        host=row["host"] or "",
        at=row["heartbeat_at"],
        plans=row.get("plans", 1),
    )


def _worker(row: Row) -> WorkerFigures:
    return WorkerFigures(
        name=row["name"],
        host=row["host"],
        running=row["running"],
        places=row["places"],
        draining=bool(row["draining"]),
        silent_s=max(0.0, (row["now"] - row["heard_at"]).total_seconds()),
    )
