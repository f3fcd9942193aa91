# SPDX-License-Identifier: Apache-2.0
"""The interfaces of rules that delay actions, or pause a plan after failures. Pure."""

from __future__ import annotations

from typing import Protocol

from planner.plan.model import Action
from planner.plan.states import ActionState


class Holding(Protocol):
    """A rule that delays actions that could start otherwise, such as windows or a health probe."""

    def holds(self, action: Action, *, begins: bool) -> bool:
        """Return whether an action must not start now.

        ``begins`` is False if its node holds a place already: another action there has started.
        """

    def again_s(self) -> float | None:
        """Return the seconds after which to call :meth:`holds` again for the delayed actions.

        None means that the plan is to be handed back to the store once no action runs.
        """

    def ended(self) -> None:
        """Handle that actions have ended; called before others start."""

    def tell(self, number: int) -> None:
        """Handle the number of delayed actions; called before each wait for events."""


class Breaker(Protocol):
    """A rule that pauses a plan after failures, such as a failure budget."""

    def exceeded(self) -> str | None:
        """Return a sentence if failures of earlier runs already forbid any start, else None."""

    def note(self, action: Action, state: ActionState) -> str | None:
        """Record the end of an action; return a sentence if no more may start, else None."""
