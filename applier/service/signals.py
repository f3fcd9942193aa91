"""What Ctrl-C means for the service, whose library ends at once on SIGINT: the first one drains."""

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
    """Answers each signal of the main process with those that it is to act on.

    SIGINT is taken as SIGTERM. Once more, or after a SIGTERM, it calls ``end``.

    >>> answer = Interrupted(end=lambda: print("ended"))
    >>> [answer(number).name for number in (signal.SIGHUP, signal.SIGINT)]
    ['SIGHUP', 'SIGTERM']
    >>> answer(signal.SIGINT)
    ended
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end, self._draining = end, False

    def __call__(self, number: int) -> int | None:
        """Give the signal to act on, if any."""
        if number == signal.SIGINT and self._draining:
            LOG.warning("SIGINT once more: it ends at once, and what runs is cut off")
            self._end()
            return None
        if number == signal.SIGINT:
            LOG.warning("SIGINT: what runs ends first; once more ends it at once")
            number = signal.SIGTERM
        self._draining = self._draining or number == signal.SIGTERM
        return number


def not_interrupted(number: int) -> int | None:
    """Answer each signal of a worker: Ctrl-C goes to all processes, and the main one decides."""
    return None if number == signal.SIGINT else number


def end_at_once() -> None:
    """End this process and those that it started, as a crash would; the exit code is 1."""
    for process in multiprocessing.active_children():
        process.kill()
    os._exit(1)


def relay(answer: Callable[[int], int | None]) -> None:
    """Let cotyledon, which has set up its own, hear what ``answer`` gives for each signal.

    To be called in the main thread. Answers are given in a thread of its own, so that signals are
    heard also while the main thread waits for workers.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    behind = signal.set_wakeup_fd(writing)

    def loop() -> None:
        while numbers := os.read(reading, _READ):
            answers = (answer(number) for number in numbers)
            os.write(behind, bytes(number for number in answers if number is not None))

    threading.Thread(target=loop, name="signals", daemon=True).start()
