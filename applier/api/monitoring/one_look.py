# SPDX-License-Identifier: Apache-2.0
"""A look at something that may hang: in a thread, with a time limit, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from applier.errors import DamagedRecord, StoreError

T = TypeVar("T")


class OneLook(Generic[T]):
    """Calls ``look`` in a thread of its own, which ends with the process.

    While one look goes on, all who ask wait for that one, so that a record that hangs holds one
    thread however often it is asked.
    """

    def __init__(self, look: Callable[[], T], limit_s: float) -> None:
        self._look, self.limit_s = look, limit_s
        self._lock = threading.Lock()
        self._going: Future[T] | None = None

    def __call__(self) -> T:
        """Return what the look returns, or raise its error; raise TimeoutError after the limit."""
        with self._lock:
            if self._going is None or self._going.done():
                self._going = Future()
                threading.Thread(
                    target=self._run, args=(self._going,), name="look", daemon=True
                ).start()
            going = self._going
        return going.result(self.limit_s)

    def _run(self, going: Future[T]) -> None:
        try:
            found = self._look()
        except (StoreError, DamagedRecord) as error:
            going.set_exception(error)
        except BaseException as error:
            # Whoever waits gets it as well; it is a mistake of the program.
            going.set_exception(error)
            raise
        else:
            going.set_result(found)
