# SPDX-License-Identifier: Apache-2.0
"""The output of a run of Ansible: what each host came to, as our callback tells it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from applier.actions.parameters import one_line
from planner.errors import shown
from planner.plan.states import Outcome

#: Begins the last line, with how the hosts ended, which is no output.
_RS = "\x1e"
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
        self._output, self._line = output, ""
        #: How each host ended that had a task; None before the end.
        self.hosts: Mapping[str, HostResult] | None = None
        #: The last line that tells an error, else the last line.
        self.last_line = ""

    def __call__(self, piece: str) -> None:
        """Process a piece of output; a line may come in several pieces."""
        *lines, self._line = (self._line + piece).split("\n")
        for line in lines:
            self._take(f"{line}\n")

    def close(self) -> None:
        """Process the last line, if it has no line feed."""
        if self._line:
            self._take(self._line)

    def _take(self, line: str) -> None:
        if line.startswith(_RS):
            found = json.loads(line[1:])
            self.hosts = {host: HostResult(**ended) for host, ended in found.items()}
            return
        self._output(line)
        if line.strip() and ("ERROR" in line or "ERROR" not in self.last_line):
            self.last_line = line.strip()


def failures(hosts: Mapping[str, HostResult]) -> str:
    """Return the failures of hosts as a sentence, equal ones told once; empty if there are none."""
    alike: dict[HostResult, list[str]] = {}
    for host, found in sorted(hosts.items()):
        if found.outcome not in (Outcome.OK, Outcome.CHANGED):
            alike.setdefault(found, []).append(host)
    told = [
        f"{', '.join(shown(names))}: {found.outcome} at {found.task!r}: {found.message}"
        for found, names in alike.items()
    ]
    return one_line("; ".join(told), _MESSAGE)
