# SPDX-License-Identifier: Apache-2.0
"""Asks whether the site is well before actions start, and pauses the plan if it is not."""

from __future__ import annotations

import logging
import shlex
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable

from planner.errors import cut
from planner.model import Action

LOG = logging.getLogger(__name__)

#: How long an answer may take, in seconds, and how often it is looked for.
PATIENCE_S, LOOK_S = 30.0, 0.1
WELL = 200
_QUIET_S = 60.0
#: How many characters of the output of a command are told.
_TOLD = 200


class HealthProbe:
    """Holds all actions back until the probe has answered, in a thread of its own.

    It is asked before the first action starts, and again after actions have ended. ``ask`` returns
    what is wrong, or None. Then ``pause`` is called, and nothing starts any more.
    """

    def __init__(
        self, ask: Callable[[], str | None], pause: Callable[[str, str | None], None]
    ) -> None:
        self._ask, self._pause = ask, pause
        self._is_due, self._asking, self._is_ill = True, False, False

    def holds(self, action: Action) -> bool:  # noqa: ARG002
        """Return whether the answer is awaited, or was bad."""
        if self._is_due and not self._asking and not self._is_ill:
            self._is_due, self._asking = False, True
            threading.Thread(target=self._look, name="health-probe", daemon=True).start()
        return self._asking or self._is_ill

    def again_s(self) -> float | None:
        """Return when to look for the answer."""
        return LOOK_S if self._asking else _QUIET_S

    def ended(self) -> None:
        """Ask again before the next action starts."""
        self._is_due = True

    def tell(self, number: int) -> None:
        """Ignore how many actions are held back: the answer comes too soon to tell of it."""

    def _look(self) -> None:
        wrong = self._ask()
        if wrong is not None:
            LOG.warning("The health probe: %s", wrong)
            self._is_ill = True
            self._pause("the health probe", wrong)
        self._asking = False


def asked(probe: str) -> str | None:
    """Ask an address or run a command line; return what is wrong, or None."""
    if probe.startswith(("http://", "https://")):
        return _address(probe)
    try:
        ended = subprocess.run(
            shlex.split(probe),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{probe} has not ended after {PATIENCE_S:g} s"
    except (OSError, ValueError) as reason:
        return f"{probe} cannot be run: {reason}"
    if ended.returncode == 0:
        return None
    last = ended.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return f"{probe} ended with {ended.returncode}" + (f": {cut(last, _TOLD)}" if last else "")


def _address(url: str) -> str | None:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 - HTTP only
            status = int(answer.status)
    except urllib.error.HTTPError as answer:
        with answer:
            status = answer.code
    except urllib.error.URLError as reason:
        return f"{url} does not answer: {reason.reason}"
    except (OSError, ValueError) as reason:
        return f"{url} does not answer: {reason}"
    return None if status == WELL else f"{url} answers {status}"
