# SPDX-License-Identifier: Apache-2.0
"""Reads the durations of earlier attempts from a database, and imports those of other records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from applier.contracts import HistoryEntry
from applier.storage import damage, statements
from applier.storage.database import Database
from applier.storage.dialects import Row, UnreadableValue
from applier.storage.schema import insert_into
from applier.storage.state_changes import take_turn, write_history
from applier.storage.transactions import Transaction
from applier.store.entries import NO_PLAN
from applier.store.samples import MOST, Sample, node_of, size_of

IMPORTED = """
    SELECT seconds, size, node FROM actionplan_duration
    WHERE action_type = :of_type
    ORDER BY number
    LIMIT :most"""
IMPORTED_TYPES = "SELECT DISTINCT action_type FROM actionplan_duration ORDER BY action_type"
FORGET = "DELETE FROM actionplan_duration WHERE action_type = :of_type"
INSERT = insert_into("actionplan_duration", without=("number",))


#: A time after the end of every attempt.
_EVER = datetime(9999, 1, 1, tzinfo=UTC)


class RecordedDurations:
    """The methods of the store for durations."""

    _database: Database

    def durations(
        self, action_types: Sequence[str], *, before: datetime | None = None, most: int = MOST
    ) -> dict[str, list[Sample]]:
        """See :meth:`applier.store.runs.RunStore.durations`."""

        def read() -> dict[str, list[Sample]]:
            took = {}
            with self._database.read() as transaction:
                for name in action_types:
                    asked = {"action_type": name, "before": before or _EVER, "most": most}
                    took[name] = _samples(_readable(transaction, asked))
                    imported = transaction.read(IMPORTED, {"of_type": name, "most": most})
                    sound = (r for r in imported if not [*damage.of_row("actionplan_duration", r)])
                    took[name] += [Sample(**row, imported=True) for row in sound]
            return {name: samples[:most] for name, samples in took.items()}

        return self._database.tried(read)

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
                transaction.write(FORGET, {"of_type": name})
            if rows:
                transaction.write(INSERT, *rows)
            write_history(transaction, NO_PLAN, history)

        self._database.writing(write, lost_too=False)

    def imported_types(self) -> list[str]:
        """List the action types of which durations were imported."""

        return self._database.reading(
            lambda transaction: [row["action_type"] for row in transaction.read(IMPORTED_TYPES)]
        )


def _readable(transaction: Transaction, asked: Mapping[str, Any]) -> list[Row]:
    """Read the attempts of a type without those whose times are damaged.

    Plans of which nothing is damaged are forecast even so; ``db check`` tells of the others.
    """
    try:
        return transaction.read(statements.DURATIONS, asked)
    except UnreadableValue:
        found = transaction.read_unconverted(statements.DURATIONS, asked)
        times = ("started_at", "ended_at")
        return [
            {**row, **{key: datetime.fromisoformat(row[key]) for key in times}}
            for row in found
            if not [*damage.of_row("actionplan_attempt", {key: row[key] for key in times})]
        ]


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
