# SPDX-License-Identifier: Apache-2.0
"""Combines several holdings: an action starts if none of them holds it back. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from applier.scheduling.holding import Holding
from planner.model import Action


class CombinedHolding:
    """A :class:`applier.scheduling.holding.Holding` that combines others."""

    def __init__(self, holdings: Sequence[Holding]) -> None:
        self._holdings = holdings

    def holds(self, action: Action, *, begins: bool) -> bool:
        """Return whether one of them holds an action back."""
        return any(one.holds(action, begins=begins) for one in self._holdings)

    def again_s(self) -> float | None:
        """Return the shortest of their times in seconds; None if one of them returns None."""
        found = [one.again_s() for one in self._holdings]
        known = [seconds for seconds in found if seconds is not None]
        return min(known) if len(known) == len(found) else None

    def ended(self) -> None:
        """Call ``ended`` of each of them."""
        for one in self._holdings:
            one.ended()

    def tell(self, number: int) -> None:
        """Call ``tell`` of each of them."""
        for one in self._holdings:
            one.tell(number)
