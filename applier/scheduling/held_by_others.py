# SPDX-License-Identifier: Apache-2.0
"""Keeps the actions that wait for a resource which another plan has reserved. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from applier.store import Reservation
from planner.model import Action


class HeldByOthers:
    """The resources that other plans have reserved, and the actions that wait for them.

    These actions are not submitted to the gates, so that none of them collects tokens while it
    waits for another plan.
    """

    def __init__(self, reservations: Iterable[Reservation] = ()) -> None:
        self._held = {r.resource: r for r in reservations}
        self._parked: dict[str, Action] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def __contains__(self, uuid: object) -> bool:
        """Return whether this action waits here."""
        return uuid in self._parked

    def blocking(self, action: Action) -> Reservation | None:
        """Return the first reservation of another plan that blocks an action, or None."""
        if not self._held:
            return None
        return next((self._held[t] for t in action.tokens if t in self._held), None)

    def park(self, action: Action) -> bool:
        """Add an action if another plan blocks it; return whether it was added."""
        if self.blocking(action) is None:
            return False
        self._parked[action.uuid] = action
        return True

    def leave(self, uuid: str) -> bool:
        """Remove an action; return whether it was among the waiting actions."""
        return self._parked.pop(uuid, None) is not None

    def replace(self, reservations: Iterable[Reservation]) -> list[Action]:
        """Replace all reservations; remove and return the actions that are no longer blocked."""
        self._held = {r.resource: r for r in reservations}
        free = [a for a in self._parked.values() if self.blocking(a) is None]
        for action in free:
            del self._parked[action.uuid]
        return free

    def clear(self) -> None:
        """Remove all actions."""
        self._parked.clear()
