# SPDX-License-Identifier: Apache-2.0
"""Run a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import commands, nodes, schemas
from applier.actions.parameters import one_line, text
from applier.contracts import ActionPlugin, Ended, Machine, StopSignal, Verified
from applier.errors import ActionFailed
from applier.secrets import shown
from planner import ranges
from planner.states import Outcome

_CODES = {
    "type": "array",
    "items": {"type": "integer", "minimum": 0, "maximum": 255},
    "uniqueItems": True,
}
#: Outcomes that a line of output may report, in order of precedence.
_TOLD = (Outcome.CREATED, Outcome.CHANGED, Outcome.OK)


class Shell(ActionPlugin):
    """Run a program (``argv``) or a line for /bin/sh (``command``); the exit code is the outcome.

    A code in ``changed_exit_codes`` (0 by default) is changed, a code in ``ok_exit_codes`` is ok,
    any other fails with the last line of the output. If the code is one of these and a whole line
    of the output matches an expression of ``outcome_lines``, that line decides instead; created
    takes precedence over changed, and changed over ok. ``env`` is added to the environment. A stop
    or ``timeout_s`` ends the whole process group. If the command ends by itself, its background
    processes keep running.
    """

    TYPE = "shell"
    MAIN = "command"
    SCHEMA: ClassVar[Mapping[str, Any]] = {
        **schemas.parameters(
            {},
            optional={
                "argv": {"type": "array", "items": ranges.ARGUMENT, "minItems": 1},
                "command": {**schemas.TEXT, "description": "run by /bin/sh -c"},
                "env": {
                    "type": "object",
                    "writeOnly": True,
                    "propertyNames": {"pattern": "^[^=]+$", "maxLength": ranges.LONGEST_NAME},
                    "additionalProperties": ranges.ARGUMENT,
                },
                "cwd": schemas.TEXT,
                "timeout_s": ranges.POSITIVE_SECONDS,
                "ok_exit_codes": _CODES,
                "changed_exit_codes": _CODES,
                "outcome_lines": {
                    "type": "object",
                    "description": "regular expressions by outcome: created, changed, ok",
                    "propertyNames": {"enum": [str(outcome) for outcome in _TOLD]},
                    "additionalProperties": schemas.TEXT,
                },
                **nodes.WHERE,
            },
            examples=[
                {"argv": ["systemctl", "restart", "haproxy"], "timeout_s": 60},
                {
                    "command": "apt-get -y upgrade && reboot",
                    "env": {"DEBIAN_FRONTEND": "noninteractive"},
                },
                {"node": "3", "command": "ntpdate -u ntp", "duration_s": 0.5},
            ],
        ),
        "anyOf": [{"required": ["argv"]}, {"required": ["command"]}, {"required": ["node"]}],
        "not": {"required": ["argv", "command"], "title": "either argv or command, not both"},
    }

    _ended: Ended | None = None

    touches = staticmethod(nodes.touches)
    works_outside = staticmethod(nodes.works_outside)
    runs_on = staticmethod(nodes.runs_on)
    estimate = staticmethod(nodes.estimate)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``run: systemctl restart haproxy``, without values of ``env``."""
        line = _line(parameters)
        what = f"run: {one_line(line, commands.SHOWN)}" if line else "run a command"
        return nodes.described(what, parameters)

    def precheck(self) -> None:
        """Raise ActionFailed for a missing command, an ambiguous exit code, a bad expression."""
        if "argv" not in self.parameters:
            nodes.check(self, "command")
        self._codes()
        self._lines()

    def execute(self, stop: StopSignal) -> Outcome:
        """Run the command until it ends."""
        self._codes()
        return nodes.perform(self, self._run, stop)

    def _run(self, machine: Machine) -> Outcome:
        ok, changed = self._codes()
        name = one_line(_line(self.parameters), commands.SHOWN)
        timeout_s = self.parameters.get("timeout_s")
        lines = commands.LineMatcher(self._lines(), self.context.output)
        self._ended = ended = commands.run(
            machine,
            self.parameters.get("argv") or ["/bin/sh", "-c", self.parameters["command"]],
            name,
            output=lines if self.parameters.get("outcome_lines") else self.context.output,
            env=self.parameters.get("env"),
            cwd=self.parameters.get("cwd"),
            timeout_s=timeout_s,
        )
        lines.close()
        code = commands.shell_code(ended)
        if ended.why is not None or code not in (*ok, *changed):
            raise commands.failure(name, ended, timeout_s)
        told = [outcome for outcome in _TOLD if outcome in lines.found]
        return told[0] if told else Outcome.CHANGED if code in changed else Outcome.OK

    def verify(self) -> Verified:
        """Return NOT_DONE if the command ended in this attempt or is simulated, else IN_DOUBT."""
        return commands.verified(self.parameters, self._ended)

    def _codes(self) -> tuple[list[int], list[int]]:
        ok = self.parameters.get("ok_exit_codes", [])
        changed = self.parameters.get("changed_exit_codes", [] if 0 in ok else [0])
        both = sorted(set(ok) & set(changed))
        if both:
            codes = ", ".join(map(str, both))
            raise ActionFailed(f"exit code {codes} is in ok_exit_codes and in changed_exit_codes")
        return ok, changed

    def _lines(self) -> dict[str, re.Pattern[str]]:
        found = {}
        for outcome, expression in self.parameters.get("outcome_lines", {}).items():
            try:
                found[outcome] = re.compile(expression)
            except re.error as reason:
                text = f"outcome_lines: {outcome}: {expression!r} is not a regular expression"
                raise ActionFailed(f"{text}: {reason}") from reason
        return found


def _line(parameters: Mapping[str, Any]) -> str:
    argv = parameters.get("argv")
    if isinstance(argv, list | tuple):
        return shlex.join(shown(word) for word in argv)
    return shown(text(parameters, "command") or "")
