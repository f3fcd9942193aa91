# SPDX-License-Identifier: Apache-2.0
"""Failure budgets: how many actions of a plan may fail before no more actions start. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from planner.schemas import ranges

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FORM = re.compile(
    r"(?:(?P<type>[^\s=,%]+)=)?(?P<number>[0-9]{1,9})(?P<percent>%)?"
    r"(?:\s+in\s+(?P<time>[1-9][0-9]{0,8})(?P<unit>[smhd]))?"
)
EXPECTED = "N, TYPE=N or TYPE=N%, each with 'in TIME' such as 'in 30m' or 'in 2h' if wanted"
#: The schema of budgets in a document.
SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "string",
        "maxLength": 300,
        "title": f"a budget: {EXPECTED}",
        "pattern": r"^\s*([^\s=,%]+=[0-9]{1,9}%?|[0-9]{1,9})(\s+in\s+[1-9][0-9]{0,8}[smhd])?\s*$",
    },
}


class Budget(NamedTuple):
    """At most ``most`` failures, or ``percent`` % of the actions of a type, within ``within_s``.

    One of ``most`` and ``percent`` is None. Without ``action_type`` the failures of all types
    count, without ``within_s`` those of the whole run. ``text`` is the budget as it was written,
    with single spaces.
    """

    action_type: str | None
    most: int | None
    percent: int | None
    within_s: float | None
    text: str

    def allowed(self, actions: int) -> int:
        """Return how many may fail of the ``actions`` that the budget counts, rounded down.

        >>> budget("migrate=10% in 1h").allowed(25), budget("3").allowed(25)
        (2, 3)
        """
        return self.most if self.most is not None else actions * (self.percent or 0) // 100


def budget(text: str) -> Budget:
    """Read a budget; raises ValueError.

    >>> budget("migrate=10%  in 1h")[:4]
    ('migrate', None, 10, 3600.0)
    """
    words = " ".join(text.split())
    found = _FORM.fullmatch(words)
    number = int(found["number"]) if found else 0
    if found is None or (found["percent"] and (found["type"] is None or number > 100)):
        raise ValueError(f"{words!r} is not {EXPECTED}")
    within_s = float(found["time"]) * _UNITS[found["unit"]] if found["time"] else None
    share = number if found["percent"] else None
    return Budget(found["type"], None if share is not None else number, share, within_s, words)


def budgets(value: str | Sequence[str]) -> tuple[str, ...]:
    """Check budgets, and return the text of each, without duplicates; raises ValueError.

    In a single text, they are separated by commas or line breaks.

    >>> budgets("3 in 1h, migrate=10%")
    ('3 in 1h', 'migrate=10%')
    """
    return ranges.distinct(value, r"[,\n]", lambda text: budget(text).text)
