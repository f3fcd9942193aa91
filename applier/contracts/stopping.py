# SPDX-License-Identifier: Apache-2.0
"""What running actions are told, and print."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class StopSignal(Protocol):
    """Tells a running action that it should end; ``threading.Event`` implements it."""

    def is_set(self) -> bool:
        """Return whether the action should end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the action should end, at most ``timeout`` seconds; return the state."""


#: Is called with text that an action prints.
Print = Callable[[str], None]


def silent(text: str) -> None:
    """Drop what is printed."""
