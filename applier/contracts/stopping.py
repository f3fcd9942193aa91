# SPDX-License-Identifier: Apache-2.0
"""The stop signal and the output function that a running action receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class StopSignal(Protocol):
    """A signal that a running action has to end; ``threading.Event`` implements it."""

    def is_set(self) -> bool:
        """Return whether the action has to end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to ``timeout`` seconds (None: for ever) for it; return whether it is set."""


#: The type of the function that an action calls with the text that it prints.
Print = Callable[[str], None]


def silent(text: str) -> None:
    """Discard the printed text."""
