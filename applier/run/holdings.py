# SPDX-License-Identifier: Apache-2.0
"""What keeps the actions of a run waiting: windows, and a health probe of the site."""

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http.client import HTTPException

from applier.configuration.option_types import shown_probe
from applier.guarding.windows import NodeWork
from applier.run.expected_durations import CAUTIOUS, PastDurations, estimates
from applier.scheduling.decisions import Holding
from applier.scheduling.failures import TypePolicy
from applier.store.runs import Sample
from planner.errors import cut
from planner.plan.model import Action

LOG = logging.getLogger(__name__)

#: The time-out of a probe, and the interval at which its end is checked, in seconds.
PATIENCE_S, LOOK_S = 30.0, 0.1
#: A probe is given up after this many seconds: a response in small pieces exceeds PATIENCE_S.
LONGEST_S = PATIENCE_S + 5.0
WELL = 200
_QUIET_S = 60.0
#: The most characters of the output of a command in a message.
_TOLD = 200


class HealthProbe:
    """Holds all actions back until a health probe has succeeded, which runs in its own thread.

    The probe runs before the first action starts, and again before the next one after actions have
    ended. ``ask`` runs it, and returns why it failed, or None. If it fails, or takes longer than
    ``patience_s`` seconds of ``clock``, ``pause`` is called once, and no more actions start.
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
        #: The thread of a running probe, its result once it has ended, and the time of its start.
        self._asking: threading.Thread | None = None
        self._answers: list[str | None] = []
        self._asked_at = 0.0

    def holds(self, action: Action, *, begins: bool) -> bool:  # noqa: ARG002
        """Return whether the probe is running, or has failed; start it if it is due.

        It does not block.
        """
        if self._asking is not None:
            self._look(self._asking)
        elif self._is_due and not self._is_ill:
            self._is_due, self._answers, self._asked_at = False, [], self._clock()
            ask = partial(_ask, self._ask, self._answers)
            self._asking = threading.Thread(target=ask, name="health-probe", daemon=True)
            try:
                self._asking.start()
            except RuntimeError as reason:  # no thread is left; it ends here, and pauses the plan
                self._answers.append(f"it cannot be run: {reason}")
        return self._asking is not None or self._is_ill

    def again_s(self) -> float | None:
        """Return in how many seconds to call :meth:`holds` again."""
        return LOOK_S if self._asking is not None else _QUIET_S

    def ended(self) -> None:
        """Make the probe run again before the next action starts."""
        self._is_due = True

    def tell(self, number: int) -> None:
        """Do nothing: a probe is too short for a message about the actions that wait for it."""

    def _look(self, asking: threading.Thread) -> None:
        """Pause the plan if the probe has failed, or takes too long."""
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
    """Request a URL, or run a command line; return why that failed, or None.

    It blocks until the response or the end of the command, which is killed after PATIENCE_S. A
    status other than 200 and an exit code other than 0 are failures.
    """
    if probe.startswith(("http://", "https://")):
        return _address(probe)
    return _command(probe)


def _command(line: str) -> str | None:
    """Run a command line; kill its process group if it has not ended after PATIENCE_S."""
    try:
        process = subprocess.Popen(
            shlex.split(line),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as reason:
        return f"{shown_probe(line)} cannot be run: {reason}"
    with process:
        try:
            output, _ = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return f"{shown_probe(line)} has not ended after {PATIENCE_S:g} s"
    if process.returncode == 0:
        return None
    last = output.decode("utf-8", "replace").strip().rpartition("\n")[2]
    how = f"{shown_probe(line)} ended with {process.returncode}"
    return how + (f": {cut(last, _TOLD)}" if last else "")


def _address(url: str) -> str | None:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 - HTTP only
            status = int(answer.status)
    except urllib.error.HTTPError as answer:
        with answer:
            status = answer.code
    except urllib.error.URLError as reason:
        return f"{shown_probe(url)} does not answer: {reason.reason}"
    except (OSError, ValueError, HTTPException) as reason:
        return f"{shown_probe(url)} does not answer: {reason}"
    return None if status == WELL else f"{shown_probe(url)} answers {status}"


def node_work(
    actions: Iterable[Action],
    look_up: Callable[[Sequence[str]], Mapping[str, Sequence[Sample]]],
    policies: Mapping[str, TypePolicy],
) -> NodeWork:
    """Return how long windows must be open for actions, by the durations of earlier runs."""
    past = PastDurations(look_up, estimates(policies))
    return NodeWork(actions, lambda action: past.expected(action, CAUTIOUS))


class CombinedHolding(Holding):
    """A holding of one or more: any of them holds back."""

    def __init__(self, holdings: Sequence[Holding]) -> None:
        self._holdings = holdings

    def holds(self, action: Action, *, begins: bool) -> bool:
        return any(one.holds(action, begins=begins) for one in self._holdings)

    def again_s(self) -> float | None:
        found = [one.again_s() for one in self._holdings]
        known = [seconds for seconds in found if seconds is not None]
        return min(known) if len(known) == len(found) else None

    def ended(self) -> None:
        for one in self._holdings:
            one.ended()

    def tell(self, number: int) -> None:
        for one in self._holdings:
            one.tell(number)
