# SPDX-License-Identifier: Apache-2.0
"""Run a command on a machine, and describe its result."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from applier.actions import nodes
from applier.actions.parameters import one_line
from applier.contracts import Ended, Machine, Verified
from applier.errors import ActionFailed, JobLost

#: The maximum length of a command in messages.
SHOWN = 60
#: The maximum length of the last line of output in status messages.
_LAST_LINE = 200
#: The maximum length of a line of output that is compared with expressions.
_LINE = 10_000


def run(
    machine: Machine,
    program: Sequence[str],
    name: str,
    *,
    output: Callable[[str], None],
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    timeout_s: float | None = None,
) -> Ended:
    """Run a program to its end.

    Raises ActionFailed, with ``name``, if it cannot be started, and JobLost if it could not be
    ended at a stop or the time-out.
    """
    try:
        ended = machine.run(program, output=output, env=env, cwd=cwd, timeout_s=timeout_s)
    except ConnectionError:
        raise
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        raise ActionFailed(f"{name}: cannot be started: {error.strerror}{where}") from error
    except ValueError as error:
        raise ActionFailed(f"{name}: cannot be started: {error}") from error
    if ended.code is None:
        raise JobLost(str(failure(name, ended, timeout_s)), is_over=False)
    return ended


def shell_code(ended: Ended) -> int | None:
    """Return an exit code as a shell reports it: 128 and the number of a signal that ended it."""
    return 128 - ended.code if ended.code is not None and ended.code < 0 else ended.code


def failure(name: str, ended: Ended, timeout_s: float | None = None) -> ActionFailed:
    """Return the error that describes how a program failed."""
    if ended.why == "timeout":
        text = f"had not ended after {timeout_s or 0:g} s, and was stopped"
    elif ended.why == "stop":
        text = f"stopped after {ended.seconds:.1f} s"
    elif ended.code is not None and ended.code < 0:
        text = f"ended by signal {-ended.code} ({signal.strsignal(-ended.code)})"
    else:
        text = f"exit code {ended.code}"
    if ended.code is None:
        text += "; it could not be ended and goes on"
    last = one_line(ended.last_line, _LAST_LINE)
    return ActionFailed(f"{name}: {text}: {last}" if last else f"{name}: {text}")


def verified(parameters: Mapping[str, Any], ended: Ended | None) -> Verified:
    """Return NOT_DONE for a command that ended in this attempt, or that is simulated.

    Return IN_DOUBT for a command of an earlier attempt, and for one that could not be ended: its
    effect is not known.
    """
    known = ended is not None or nodes.is_simulated(parameters)
    return Verified.NOT_DONE if known else Verified.IN_DOUBT


class LineMatcher:
    r"""Passes output on, and records which expressions match a whole line of it.

    >>> lines = LineMatcher({"ok": re.compile("no changes?")}, lambda text: None)
    >>> for piece in ("one\nno ch", "ange\ntwo"): lines(piece)
    >>> lines.close(), lines.found
    (None, {'ok'})
    """

    def __init__(
        self, patterns: Mapping[str, re.Pattern[str]], output: Callable[[str], None]
    ) -> None:
        self._patterns, self._output = patterns, output
        self._line = ""
        #: Keys of the expressions that matched.
        self.found: set[str] = set()

    def __call__(self, text: str) -> None:
        """Process a piece of output; a line may come in several pieces."""
        self._output(text)
        *whole, last = text.split("\n")
        for part in whole:
            self._compare(self._line + part[: _LINE + 1])
            self._line = ""
        self._line = (self._line + last[: _LINE + 1])[: _LINE + 1]

    def close(self) -> None:
        """Compare the last line, if it has no line feed."""
        if self._line:
            self._compare(self._line)

    def _compare(self, line: str) -> None:
        if len(line) <= _LINE:
            line = line.removesuffix("\r")
            self.found.update(k for k, p in self._patterns.items() if p.fullmatch(line))
