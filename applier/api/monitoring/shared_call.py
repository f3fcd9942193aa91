# SPDX-License-Identifier: Apache-2.0
"""Calls a function that may hang: in a thread, with a time limit, one call at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from applier.errors import DamagedRecord, StoreError

T = TypeVar("T")


class SharedCall(Generic[T]):
    """Calls ``look`` in a daemon thread, and waits up to ``limit_s`` seconds for its result.

    While a call runs, all callers wait for that call, so that a database that hangs blocks only one
    thread.
    """

    def __init__(self, look: Callable[[], T], limit_s: float) -> None:
        self._look, self.limit_s = look, limit_s
        self._lock = threading.Lock()
        self._going: Future[T] | None = None

    def __call__(self) -> T:
        """Return the result of ``look``, or raise its error; raise TimeoutError after the limit."""
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
            # A bug: it is raised in the waiting callers as well as in this thread.
            going.set_exception(error)
            raise
        else:
            going.set_result(found)
