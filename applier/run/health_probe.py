# SPDX-License-Identifier: Apache-2.0
"""Asks whether the site is well before actions start, and pauses the plan if it is not."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPException

from planner.errors import cut
from planner.model import Action

LOG = logging.getLogger(__name__)

#: How long an answer may take, in seconds, and how often it is looked for.
PATIENCE_S, LOOK_S = 30.0, 0.1
#: An answer that comes in small pieces is given up after this time.
LONGEST_S = PATIENCE_S + 5.0
WELL = 200
_QUIET_S = 60.0
#: How many characters of the output of a command are told.
_TOLD = 200


class HealthProbe:
    """Holds all actions back until the probe has answered, in a thread of its own.

    It is asked before the first action starts, and again after actions have ended. ``ask`` returns
    what is wrong, or None. If anything is, or if there is no answer after ``patience_s`` seconds of
    ``clock``, ``pause`` is called, and nothing starts any more.
    """

    def __init__(
        self,
        ask: Callable[[], str | None],
        pause: Callable[[str, str | None], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = LONGEST_S,
    ) -> None:
        self._ask, self._pause = ask, pause
        self._clock, self._patience_s = clock, patience_s
        self._is_due, self._is_ill = True, False
        #: Who asks now, the answer once it is there, and since when it is awaited.
        self._asking: threading.Thread | None = None
        self._answers: list[str | None] = []
        self._asked_at = 0.0

    def holds(self, action: Action) -> bool:  # noqa: ARG002
        """Return whether the answer is awaited, or was bad."""
        if self._asking is not None:
            self._look(self._asking)
        elif self._is_due and not self._is_ill:
            self._is_due, self._answers, self._asked_at = False, [], self._clock()
            ask = partial(_ask, self._ask, self._answers)
            self._asking = threading.Thread(target=ask, name="health-probe", daemon=True)
            self._asking.start()
        return self._asking is not None or self._is_ill

    def again_s(self) -> float | None:
        """Return when to look for the answer."""
        return LOOK_S if self._asking is not None else _QUIET_S

    def ended(self) -> None:
        """Ask again before the next action starts."""
        self._is_due = True

    def tell(self, number: int) -> None:
        """Ignore how many actions are held back: the answer comes too soon to tell of it."""

    def _look(self, asking: threading.Thread) -> None:
        """Pause the plan if the answer is bad, or does not come."""
        if not asking.is_alive():
            wrong = self._answers[0] if self._answers else "it broke: see the log"
        elif self._clock() - self._asked_at > self._patience_s:
            wrong = f"no answer after {self._patience_s:g} s"
        else:
            return
        self._asking = None
        if wrong is not None:
            LOG.warning("The health probe: %s", wrong)
            self._is_ill = True
            self._pause("the health probe", wrong)


def _ask(ask: Callable[[], str | None], answers: list[str | None]) -> None:
    answers.append(ask())


def asked(probe: str) -> str | None:
    """Ask an address or run a command line; return what is wrong, or None."""
    if probe.startswith(("http://", "https://")):
        return _address(probe)
    return _command(probe)


def _command(line: str) -> str | None:
    """Run a command line; what has not ended in time is killed with all that it has started."""
    try:
        process = subprocess.Popen(
            shlex.split(line),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as reason:
        return f"{line} cannot be run: {reason}"
    with process:
        try:
            output, _ = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return f"{line} has not ended after {PATIENCE_S:g} s"
    if process.returncode == 0:
        return None
    last = output.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return f"{line} ended with {process.returncode}" + (f": {cut(last, _TOLD)}" if last else "")


def _address(url: str) -> str | None:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 - HTTP only
            status = int(answer.status)
    except urllib.error.HTTPError as answer:
        with answer:
            status = answer.code
    except urllib.error.URLError as reason:
        return f"{url} does not answer: {reason.reason}"
    except (OSError, ValueError, HTTPException) as reason:
        return f"{url} does not answer: {reason}"
    return None if status == WELL else f"{url} answers {status}"
