# SPDX-License-Identifier: Apache-2.0
"""Makes the first Ctrl-C drain the service, which the library cotyledon would end at once."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable

LOG = logging.getLogger(__name__)

_READ = 4096


class Interrupted:
    """Maps each signal that the main process receives to the signal that cotyledon handles.

    The first SIGINT becomes SIGTERM. A second one, or one after a SIGTERM, calls ``end``.

    >>> answer = Interrupted(end=lambda: print("ended"))
    >>> [answer(number).name for number in (signal.SIGHUP, signal.SIGINT)]
    ['SIGHUP', 'SIGTERM']
    >>> answer(signal.SIGINT)
    ended
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end, self._draining = end, False

    def __call__(self, number: int) -> int | None:
        """Return the signal to handle instead of this one, or None."""
        if number == signal.SIGINT and self._draining:
            LOG.warning("Second SIGINT: the service ends at once and interrupts running actions")
            self._end()
            return None
        if number == signal.SIGINT:
            LOG.warning(
                "SIGINT: the service ends when running actions have; another SIGINT ends it at once"
            )
            number = signal.SIGTERM
        self._draining = self._draining or number == signal.SIGTERM
        return number


def not_interrupted(number: int) -> int | None:
    """Drop SIGINT in a worker: Ctrl-C reaches all processes, and only the main one handles it."""
    return None if number == signal.SIGINT else number


def end_at_once() -> None:
    """Kill this process and its children at once; the exit code is 1."""
    for process in multiprocessing.active_children():
        process.kill()
    os._exit(1)


def relay(answer: Callable[[int], int | None]) -> None:
    """Pass every signal through ``answer`` before it reaches the wake-up descriptor of cotyledon.

    Call it in the main thread, after cotyledon has installed its descriptor. A thread reads the
    signals, so that they are handled while the main thread waits for workers.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    behind = signal.set_wakeup_fd(writing)

    def loop() -> None:
        while numbers := os.read(reading, _READ):
            answers = (answer(number) for number in numbers)
            os.write(behind, bytes(number for number in answers if number is not None))

    threading.Thread(target=loop, name="signals", daemon=True).start()
