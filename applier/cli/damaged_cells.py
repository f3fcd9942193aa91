# SPDX-License-Identifier: Apache-2.0
"""The cells of a damaged row in a list."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from applier.errors import DamagedRow
from planner.errors import short

#: Stands in a table in place of a damaged value.
DAMAGED = "damaged"
#: Columns of uuids, which tables shorten.
_UUIDS = ("uuid", "plan", "action")


def cells(row: DamagedRow, names: Sequence[str | None], *, whole: bool) -> tuple[Any, ...]:
    """Return the values of the columns ``names``, with DAMAGED for each damaged one.

    A name of None is that of a cell that stays empty. If ``whole``, the cells are for programs:
    values are not shortened, and None stands for what is empty or damaged.

    >>> row = DamagedRow("entry 7", "at 'x' is not a time", {"number": 7, "who": None})
    >>> cells(row, ["number", "at", "who", None], whole=False)
    (7, 'damaged', '', '')
    >>> cells(row, ["number", "at", "who", None], whole=True)
    (7, None, None, None)
    """
    empty = None if whole else ""
    return tuple(
        empty if name is None else _cell(row, name, whole=whole, empty=empty) for name in names
    )


def _cell(row: DamagedRow, name: str, *, whole: bool, empty: str | None) -> Any:
    value = row.values.get(name, None if whole else DAMAGED)
    if isinstance(value, datetime):
        return value.isoformat() if whole else f"{value:%Y-%m-%d %H:%M:%S}"
    if value is None:
        return empty
    return short(value) if name in _UUIDS and not whole and name in row.values else value
