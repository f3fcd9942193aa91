# SPDX-License-Identifier: Apache-2.0
"""The output of a run of Ansible: what each host came to, as our callback tells it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from applier.actions.parameters import one_line
from planner.errors import shown
from planner.plan.states import Outcome

#: Begins the last line, with how the hosts ended, which is no output.
_RS = "\x1e"
#: The most characters that are kept of a line, and of the result of all hosts.
_LINE, _RESULT = 4096, 64 << 20
#: The most characters of the failures of all hosts in a message.
_MESSAGE = 1500


class HostResult(NamedTuple):
    """How a host ended: changed, ok, failed or unreachable; of the last two, where and why.

    In check mode, ``task`` names what Ansible does not look at, such as commands.
    """

    outcome: str
    task: str
    message: str


class AnsibleOutput:
    r"""Passes the output of Ansible on, less the line with which our callback ends it.

    >>> told = AnsibleOutput(lambda line: None)
    >>> told('TASK a\n\x1e{"b": {"outcome": "ok", '); told.hosts
    >>> told('"task": "", "message": ""}}\n'); told.hosts, told.last_line
    ({'b': HostResult(outcome='ok', task='', message='')}, 'TASK a')
    """

    def __init__(self, output: Callable[[str], None]) -> None:
        self._output = output
        #: The pieces of the line that has begun, and how many more characters of it are kept.
        self._pieces: list[str] = []
        self._room = 0
        #: How each host ended that had a task; None before the end.
        self.hosts: Mapping[str, HostResult] | None = None
        #: The last line that tells an error, else the last line.
        self.last_line = ""

    def __call__(self, piece: str) -> None:
        """Process a piece of output; a line may come in several pieces."""
        *lines, last = piece.split("\n")
        for line in lines:
            self._add(f"{line}\n")
            self.close()
        self._add(last)

    def _add(self, piece: str) -> None:
        """Pass a piece of a line on, unless it is the result, and keep the begin of the line."""
        if not piece:
            return
        if not self._pieces:
            self._room = _RESULT if piece.startswith(_RS) else _LINE
        if not (self._pieces or [piece])[0].startswith(_RS):
            self._output(piece)
        if self._room:
            self._pieces.append(piece[: self._room])
            self._room -= len(self._pieces[-1])

    def close(self) -> None:
        """End the line that has begun, if any."""
        line, self._pieces = "".join(self._pieces), []
        if line.startswith(_RS):
            with suppress(ValueError):  # it is not whole if Ansible was killed
                found = json.loads(line[1:])
                self.hosts = {host: HostResult(**ended) for host, ended in found.items()}
        elif line.strip() and ("ERROR" in line or "ERROR" not in self.last_line):
            self.last_line = line.strip()


def failures(hosts: Mapping[str, HostResult]) -> str:
    """Return the failures of hosts as a sentence, equal ones told once; empty if there are none."""
    alike: dict[HostResult, list[str]] = {}
    for host, found in sorted(hosts.items()):
        if found.outcome not in (Outcome.OK, Outcome.CHANGED):
            alike.setdefault(found, []).append(host)
    told = [
        f"{', '.join(shown(names))}: {found.outcome}{found.task and f' at {found.task!r}'}"
        f": {found.message}"
        for found, names in alike.items()
    ]
    return one_line("; ".join(told), _MESSAGE)
