# SPDX-License-Identifier: Apache-2.0
"""Calls a function periodically, in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Periodic:
    """A context manager that calls ``function`` every ``interval_s`` seconds inside its block.

    The first call is made after the first interval. The calls end if the function returns False or
    raises an error. Leaving the block waits for a call that is in progress.
    """

    def __init__(self, name: str, interval_s: float, function: Callable[[], bool]) -> None:
        self._interval_s, self._function = interval_s, function
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)

    def __enter__(self) -> Periodic:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._left.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._left.wait(self._interval_s) and self._function():
            pass
