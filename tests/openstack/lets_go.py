# SPDX-License-Identifier: Apache-2.0
"""A stop signal for what is held until somebody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class LetsGo(threading.Event):
    """Calls ``let_go`` when somebody waits; so what it holds is under way when it is found."""

    def __init__(self, let_go: Callable[[], None]) -> None:
        super().__init__()
        self._let_go = let_go

    def wait(self, timeout: float | None = None) -> bool:
        self._let_go()
        return super().wait(timeout)
