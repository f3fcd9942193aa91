# SPDX-License-Identifier: Apache-2.0
"""Finds how long windows must be open when an action starts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from planner.plan.model import Action
from planner.plan.place_rules import HeldPlace
from planner.plan.states import OPEN, ActionState


class NodeWork:
    """The seconds that an action needs, or what is left on a whole node for the first on it.

    ``actions`` are those of a plan; of a node that holds a place, an action starts the work on the
    node, which must not be left half done when a window closes. ``expected_s`` returns the seconds
    within which 9 in 10 such actions end.
    """

    def __init__(self, actions: Iterable[Action], expected_s: Callable[[Action], float]) -> None:
        self._expected_s = expected_s
        self._left: Counter[HeldPlace] = Counter()
        self._begun: set[HeldPlace] = set()
        for action in actions:
            if action.places and action.state in OPEN:
                self._left.update(dict.fromkeys(action.places, expected_s(action)))
            if action.attempts or action.state is ActionState.ONGOING:
                self._begun.update(action.places)

    def needed_s(self, action: Action) -> float:
        """Return for how many seconds a window must be open when an action starts."""
        if not action.places:
            return self._expected_s(action)
        return 0.0 if self.goes_on(action) else max(self._left[place] for place in action.places)

    def goes_on(self, action: Action) -> bool:
        """Return whether its node has begun: no window holds it back."""
        return not self._begun.isdisjoint(action.places)
