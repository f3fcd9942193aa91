# SPDX-License-Identifier: Apache-2.0
"""The processes of ``actionplan-applier``: how one begins and ends, and its signals.

The first Ctrl-C drains the service, which the library cotyledon would end at once.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

import cotyledon
from oslo_config import cfg

from applier.assembly import Assembly

LOG = logging.getLogger(__name__)

_READ = 4096


class ServiceProcess(cotyledon.Service):
    """A process that works until a signal stops the service; cotyledon restarts it if it dies."""

    def __init__(self, worker_id: int, conf: cfg.ConfigOpts) -> None:
        super().__init__(cast("Any", worker_id))
        self.conf = conf
        #: Set when the service is to end; the work has ended when ``_over`` is set.
        self.ending, self._over = threading.Event(), threading.Event()
        relay(not_interrupted)

    def work(self, assembly: Assembly) -> None:
        """Work until ``ending`` is set."""
        raise NotImplementedError

    def run(self) -> None:
        """Call :meth:`work` with an assembly for the configuration, which is closed at the end."""
        try:
            with closing(Assembly(self.conf)) as assembly:
                self.work(assembly)
        finally:
            self._over.set()

    def terminate(self) -> None:
        """Set ``ending``, and wait until the work has ended.

        cotyledon kills the process if that takes longer than ``grace_s`` seconds.
        """
        self.ending.set()
        self._over.wait()


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
