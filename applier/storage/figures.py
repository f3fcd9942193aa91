# SPDX-License-Identifier: Apache-2.0
"""Counts the rows of the record for monitoring, in the database; most counts are bounded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from applier.storage.database import Database
from applier.storage.dialects import Row
from applier.storage.event_rows import RUNNING, SUBSCRIPTIONS, needed_from, subscription_of
from applier.storage.kept_events import waiting
from applier.storage.schema import words
from applier.storage.statements import WAITING
from applier.storage.transactions import Transaction
from applier.store.figures import Heartbeat, Outbox, StoreFigures, WorkerFigures
from planner.plan.states import PlanState

#: The states of plans whose actions are counted: those that were started and have not ended.
UNDER_WAY = (PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING, PlanState.PAUSED)
#: The most rows of actions or jobs that are counted, and the most claimants, services or workers
#: that are listed.
MOST_ACTIONS, MOST_HEARTBEATS = 100_000, 1000

#: Reads at most one row: it only finds out whether the table of plans can be read.
PING = "SELECT number FROM actionplan_plan LIMIT 1"
PLANS = "SELECT state, count(*) AS number FROM actionplan_plan GROUP BY state"
#: The number of actions of the plans under way, by type and state; without an order, so that
#: nothing is sorted.
ACTIONS = f"""
    SELECT action_type, state, count(*) AS number
    FROM (
        SELECT s.action_type, s.state
        FROM actionplan_plan AS p JOIN actionplan_action_state AS s ON s.plan = p.uuid
        WHERE p.state IN {words(UNDER_WAY)}
        LIMIT :most) AS counted
    GROUP BY action_type, state"""
#: The plan that has waited longest for an applier.
OLDEST_PENDING = f"SELECT updated_at, created_at {WAITING} LIMIT 1"
CLAIMANTS = f"""
    SELECT uuid, claimant_host AS host, heartbeat_at FROM actionplan_plan
    WHERE state IN {words(RUNNING)} AND claim IS NOT NULL
    ORDER BY number DESC
    LIMIT :most"""
SERVICES = """
    SELECT uuid, host, heartbeat_at, plans FROM actionplan_service
    ORDER BY heartbeat_at DESC
    LIMIT :most"""
#: The workers on other machines, latest report first.
WORKERS = """
    SELECT name, host, running, places, draining, heard_at, now_plus(0) AS now
    FROM actionplan_worker
    ORDER BY heard_at DESC
    LIMIT :most"""
#: The number of their jobs by state. A job has a row while its action is ONGOING.
JOBS = """
    SELECT state, count(*) AS number
    FROM (SELECT state FROM actionplan_worker_job LIMIT :most) AS counted
    GROUP BY state"""
#: The first event from a number on.
OLDEST_EVENT = "SELECT at FROM actionplan_event WHERE number >= :first ORDER BY number LIMIT 1"
DEAD = "SELECT subscription, count(*) AS number FROM actionplan_dead_event GROUP BY subscription"


class RecordFigures:
    """The methods of the store that monitoring uses."""

    _database: Database

    def ping(self) -> None:
        """Return if the store answers a query, else raise StoreError without long retries."""

        self._database.reading(lambda transaction: transaction.read(PING), lost_too=False)

    def figures(self) -> StoreFigures:
        """Count plans, actions, events and jobs, and list the heartbeats.

        Raises StoreError without long retries if the store does not answer.
        """

        def read(transaction: Transaction) -> StoreFigures:
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

        return self._database.reading(read, lost_too=False)


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
