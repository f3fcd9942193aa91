"""Actions that wait for what another plan works on: they stand before the gates. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from applier.store import Reservation
from planner.model import Action


class HeldByOthers:
    """Knows which resources other plans hold, and which actions wait for that.

    They are kept away from the gates, so that none of them collects tokens while it waits for
    somebody who does not know this plan.
    """

    def __init__(self, reservations: Iterable[Reservation] = ()) -> None:
        self._held = {r.resource: r for r in reservations}
        self._parked: dict[str, Action] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def __contains__(self, uuid: object) -> bool:
        """Does this action wait here?"""
        return uuid in self._parked

    def blocking(self, action: Action) -> Reservation | None:
        """Give the first reservation of another plan that keeps an action from starting."""
        if not self._held:
            return None
        return next((self._held[t] for t in action.tokens if t in self._held), None)

    def park(self, action: Action) -> bool:
        """Let an action wait here if it has to; says whether."""
        if self.blocking(action) is None:
            return False
        self._parked[action.uuid] = action
        return True

    def leave(self, uuid: str) -> bool:
        """Forget an action that waits here; says whether it did."""
        return self._parked.pop(uuid, None) is not None

    def replace(self, reservations: Iterable[Reservation]) -> list[Action]:
        """Take in what other plans hold now; gives the actions that wait here no longer."""
        self._held = {r.resource: r for r in reservations}
        free = [a for a in self._parked.values() if self.blocking(a) is None]
        for action in free:
            del self._parked[action.uuid]
        return free

    def clear(self) -> None:
        """Forget all that wait."""
        self._parked.clear()
