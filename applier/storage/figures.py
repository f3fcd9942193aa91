# SPDX-License-Identifier: Apache-2.0
"""The record in numbers: durations of attempts for forecasts, and bounded counts for monitoring."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from applier.contracts import HistoryEntry
from applier.storage import damage, statements
from applier.storage.damaged_rows import SoundRows
from applier.storage.database import PartOfStore
from applier.storage.event_rows import needed_from, subscription_of
from applier.storage.kept_events import waiting
from applier.storage.state_changes import take_turn, write_history
from applier.storage.statements import Row, UnreadableValue
from applier.storage.transactions import Kind, Transaction
from applier.store.entries import NO_PLAN, Heartbeat, Outbox, StoreFigures, WorkerFigures
from applier.store.runs import MOST, RunStore, Sample, node_of, size_of

#: The most rows of actions or jobs that are counted, and the most claimants, services or workers
#: that are listed.
MOST_ACTIONS, MOST_HEARTBEATS = 100_000, 1000


#: A time after the end of every attempt.
_EVER = datetime(9999, 1, 1, tzinfo=UTC)


class RecordFigures(PartOfStore, RunStore):
    """The methods of the store for durations, and those that monitoring uses."""

    def durations(
        self, action_types: Sequence[str], *, before: datetime | None = None, most: int = MOST
    ) -> dict[str, list[Sample]]:
        def read(transaction: Transaction) -> dict[str, list[Sample]]:
            took = {}
            for name in action_types:
                asked = {"action_type": name, "before": before or _EVER, "most": most}
                imported = transaction.read(statements.IMPORTED, {"of_type": name, "most": most})
                sound = (r for r in imported if not [*damage.of_row("actionplan_duration", r)])
                samples = _samples(_readable(transaction, asked))
                took[name] = [*samples, *(Sample(**row, imported=True) for row in sound)][:most]
            return took

        return self._database.reading(read)

    def import_durations(
        self, samples: Mapping[str, Sequence[Sample]], *, history: HistoryEntry
    ) -> None:
        """Save durations by action type; they replace all that were imported for these types.

        ``history`` is the entry of this change; it is written for
        :data:`applier.store.entries.NO_PLAN`.
        """
        rows = [
            {"action_type": name, "size": s.size, "node": s.node, "seconds": s.seconds}
            for name, found in samples.items()
            for s in found
        ]

        def write(transaction: Transaction) -> None:
            take_turn(transaction)  # of two imports at once, the second waits for the first
            for name in samples:
                transaction.write(statements.FORGET_DURATIONS, {"of_type": name})
            if rows:
                transaction.insert("actionplan_duration", *rows)
            write_history(transaction, NO_PLAN, history)

        self._database.writing(write, lost_too=False)

    def imported_types(self) -> list[str]:
        """List the action types of which durations were imported."""
        return self._database.reading(
            lambda transaction: [
                row["action_type"] for row in transaction.read(statements.IMPORTED_TYPES)
            ]
        )

    def ping(self) -> None:
        """Return if the store answers a query, else raise StoreError without long retries."""
        self._database.reading(
            lambda transaction: transaction.read(statements.PING), lost_too=False
        )

    def figures(self) -> StoreFigures:
        """Count plans, actions, events and jobs, and list the heartbeats.

        Raises StoreError without long retries if the store does not answer.
        """

        def read(transaction: Transaction) -> StoreFigures:
            states = transaction.read(statements.PLANS_BY_STATE)
            actions = transaction.read(statements.ACTIONS_BY_TYPE, {"most": MOST_ACTIONS})
            oldest = transaction.read(statements.OLDEST_PENDING)
            claimants = transaction.read(statements.CLAIMANTS, {"most": MOST_HEARTBEATS})
            reported = transaction.read(statements.SERVICE_BEATS, {"most": MOST_HEARTBEATS})
            outboxes = list(_outboxes(transaction))
            registered = transaction.read(statements.WORKER_FIGURES, {"most": MOST_HEARTBEATS})
            jobs = transaction.read(statements.JOBS_BY_STATE, {"most": MOST_ACTIONS})
            return StoreFigures(
                plans={row["state"]: row["number"] for row in states},
                in_doubt=transaction.read(statements.PLANS_IN_DOUBT)[0]["number"],
                actions={(r["action_type"], r["state"]): r["number"] for r in actions},
                are_all_counted=sum(row["number"] for row in actions) < MOST_ACTIONS,
                oldest_pending_at=oldest[0]["at"] if oldest else None,
                claimants=tuple(Heartbeat(**row) for row in claimants),
                services=tuple(Heartbeat(**row) for row in reported),
                outboxes=tuple(outboxes),
                workers=tuple(map(_worker, registered)),
                jobs={row["state"]: row["number"] for row in jobs},
            )

        return self._database.reading(read, lost_too=False)


def _outboxes(transaction: Transaction) -> Iterator[Outbox]:
    """Yield the outbox of each receiver; ``waiting`` includes events of joins, never delivered."""
    counted = transaction.read(statements.DEAD_BY_RECEIVER)
    dead = {row["subscription"]: row["number"] for row in counted}
    for receiver in map(subscription_of, transaction.read(statements.SUBSCRIPTIONS)):
        if receiver.until is None:
            oldest = transaction.read(statements.OLDEST_EVENT, {"first": needed_from(receiver)})
            yield Outbox(
                subscription=receiver.name,
                waiting=waiting(transaction, receiver),
                oldest_at=oldest[0]["at"] if oldest else None,
                held_back=len(receiver.held_back),
                dead=dead.get(receiver.name, 0),
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


_ATTEMPTS = Kind("actionplan_attempt", lambda row: row, "an attempt")


def _readable(transaction: Transaction, asked: Mapping[str, Any]) -> list[Row]:
    """Read the attempts of a type without those whose times are damaged.

    Plans of which nothing is damaged are forecast even so; ``db check`` tells of the others.
    """
    try:
        return transaction.read(statements.DURATIONS, asked)
    except UnreadableValue:
        return SoundRows(transaction).of(_ATTEMPTS, statements.DURATIONS, asked)


def _samples(rows: Iterable[Row]) -> list[Sample]:
    """Return the samples of rows, without negative durations, which clocks that were set back make.

    Size and node are None if the columns of the action are damaged.
    """
    node, size = cache(_reader(node_of)), cache(_reader(size_of))
    return [
        Sample(took.total_seconds(), size(row["input_parameters"]), node(row["tokens"]))
        for row in rows
        if (took := row["ended_at"] - row["started_at"]) >= timedelta()
    ]


def _reader(find: Callable[[Any], str | None]) -> Callable[[str], str | None]:
    """Return a function that finds a text in a column of JSON; None if the column is damaged."""

    def found(text: str) -> str | None:
        try:
            return find(json.loads(text))
        except (ValueError, TypeError, AttributeError, RecursionError):
            return None

    return found
