# SPDX-License-Identifier: Apache-2.0
"""The interfaces of what holds actions back, and of what stops a plan that fails. Pure."""

from __future__ import annotations

from typing import Protocol

from planner.model import Action
from planner.states import ActionState


class Holding(Protocol):
    """Decides for each action that could start now whether it has to wait for another time."""

    def holds(self, action: Action) -> bool:
        """Return whether an action must not start now."""

    def again_s(self) -> float | None:
        """Return in how many seconds to ask again; None: if nothing runs, hand the plan back."""

    def ended(self) -> None:
        """Is called when actions have ended, before others start."""

    def tell(self, number: int) -> None:
        """Is called with the number of actions that are held back, whenever it changes."""


class Breaker(Protocol):
    """Decides by the ends of actions whether nothing new may start."""

    def exceeded(self) -> str | None:
        """Return why nothing may start in this run, in a sentence, or None."""

    def note(self, action: Action, state: ActionState) -> str | None:
        """Note the end of an action; return why nothing new may start, in a sentence, or None."""
