# SPDX-License-Identifier: Apache-2.0
"""Reads a list with damaged rows: the sound ones, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from applier.errors import DamagedRow
from applier.storage import damage
from applier.storage.schema import MOMENTS, TABLES
from applier.storage.statements import Row, UnreadableValue
from applier.storage.transactions import Kind, Rows

T = TypeVar("T")


class SoundRows(Rows):
    """Reads and converts rows, and leaves out the damaged ones, which are in ``damaged``."""

    def of(self, kind: Kind[T], statement: str, asked: Mapping[str, Any]) -> list[T]:
        """Return the converted sound rows of a SELECT."""
        sound = []
        for stored in self.transaction.read_unconverted(statement, asked):
            try:
                _require_utf8(stored)
                row = self.transaction.converted(statement, stored, kind.table)
                sound.append(kind.convert(row))
            except UnreadableValue as reason:
                self.damaged.append(_damaged(kind, stored, str(reason)))
        return sound


def _require_utf8(row: Row) -> None:
    """Raise UnreadableValue for a text that is not UTF-8, of which wrong bytes are surrogates."""
    for name, value in row.items():
        try:
            if isinstance(value, str):
                value.encode()
        except UnicodeEncodeError as reason:
            raise UnreadableValue(f"{name} is not UTF-8") from reason


def _damaged(kind: Kind[Any], stored: Row, otherwise: str) -> DamagedRow:
    """Return a damaged row with the problems of its columns; ``otherwise`` if none has any."""
    own = {name: value for name, value in stored.items() if name in TABLES[kind.table]}
    problems = {name: list(damage.of_row(kind.table, {name: own[name]})) for name in own}
    return DamagedRow(
        name=kind.name.format_map({key: escaped(value) for key, value in stored.items()}),
        why="; ".join(wrong for found in problems.values() for wrong in found) or otherwise,
        values={name: _value(name, own[name]) for name, wrong in problems.items() if not wrong},
    )


def escaped(stored: Any) -> Any:
    r"""Return a stored value with an escape in place of each byte of a text that is not UTF-8.

    >>> escaped("\udcffA")
    '\\xffA'
    """
    if not isinstance(stored, str):
        return stored
    return stored.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _value(name: str, stored: Any) -> Any:
    """Return the value of a sound column as the store returns it."""
    if stored is None or name not in MOMENTS:
        return stored
    at = stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)
    return at.replace(tzinfo=UTC)
