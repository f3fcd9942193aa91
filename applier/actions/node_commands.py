# SPDX-License-Identifier: Apache-2.0
"""The action types that run a command on a node, or on this machine: shell, puppet, reboot."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import node_action, schemas
from applier.actions.parameters import one_line, text
from applier.contracts import Ended, Machine, StopSignal, Verified
from applier.errors import ActionFailed, JobLost
from applier.secret_values import shown
from planner.plan.states import Outcome
from planner.schemas import ranges

_CODES = {
    "type": "array",
    "items": {"type": "integer", "minimum": 0, "maximum": 255},
    "uniqueItems": True,
}
#: Outcomes that a line of output may report, in order of precedence.
_TOLD = (Outcome.CREATED, Outcome.CHANGED, Outcome.OK)
#: The outcome for each exit code of ``puppet apply --detailed-exitcodes``.
_PUPPET = {0: Outcome.OK, 2: Outcome.CHANGED}
#: Seconds that a node may take to restart.
BACK_S = 600.0
#: Seconds between two checks whether it has restarted.
LOOK_S = 3.0
#: The file with the boot id, which the kernel generates at each start.
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Shell(node_action.NodeCommand):
    """Run a program (``argv``) or a line for /bin/sh (``command``); the exit code is the outcome.

    A code in ``changed_exit_codes`` (0 by default) is changed, a code in ``ok_exit_codes`` is ok,
    any other fails with the last line of the output. If the code is one of these and a whole line
    of the output matches an expression of ``outcome_lines``, that line decides instead; created
    takes precedence over changed, and changed over ok. ``env`` is added to the environment. A stop
    or ``timeout_s`` ends the whole process group. If the command ends by itself, its background
    processes keep running.
    """

    TYPE, MAIN, NEEDS = "shell", "command", ("command",)
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
                **node_action.WHERE,
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

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``run: systemctl restart haproxy``, without values of ``env``."""
        line = _line(parameters)
        what = f"run: {one_line(line, node_action.SHOWN)}" if line else "run a command"
        return node_action.described(what, parameters)

    def precheck(self) -> None:
        if "argv" not in self.parameters:
            super().precheck()
        self._codes()
        self._lines()

    def _work(self, machine: Machine, stop: StopSignal) -> Outcome:  # noqa: ARG002
        ok, changed = self._codes()
        name = one_line(_line(self.parameters), node_action.SHOWN)
        timeout_s = self.parameters.get("timeout_s")
        lines = node_action.LineMatcher(self._lines(), self.context.output)
        self._ended = ended = node_action.run(
            machine,
            self.parameters.get("argv") or ["/bin/sh", "-c", self.parameters["command"]],
            name,
            output=lines if self.parameters.get("outcome_lines") else self.context.output,
            env=self.parameters.get("env"),
            cwd=self.parameters.get("cwd"),
            timeout_s=timeout_s,
        )
        lines.close()
        code = _shell_code(ended)
        if ended.why is not None or code not in (*ok, *changed):
            raise node_action.failure(name, ended, timeout_s)
        told = [outcome for outcome in _TOLD if outcome in lines.found]
        return told[0] if told else Outcome.CHANGED if code in changed else Outcome.OK

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


def _shell_code(ended: Ended) -> int | None:
    """Return an exit code as a shell reports it: 128 and the number of a signal that ended it."""
    return 128 - ended.code if ended.code is not None and ended.code < 0 else ended.code


def _line(parameters: Mapping[str, Any]) -> str:
    argv = parameters.get("argv")
    if isinstance(argv, list | tuple):
        return shlex.join(shown(word) for word in argv)
    return shown(text(parameters, "command") or "")


class Puppet(node_action.NodeCommand):
    """Run ``puppet apply`` with a manifest, and with the paths in ``modules``.

    Exit code 0 is ok (nothing had to change), 2 is changed, any other is a failure. Manifest and
    modules must be on the node.
    """

    TYPE, MAIN, NEEDS = "puppet", "manifest", ("manifest",)
    #: True, because a manifest describes a state: applying it again changes nothing more.
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = node_action.parameters(
        {"manifest": {**schemas.TEXT, "description": "path of the manifest on the node"}},
        {
            "modules": {
                "type": "array",
                "items": schemas.TEXT,
                "description": "folders that are searched for modules, in this order",
            },
            "cwd": schemas.TEXT,
        },
        {"manifest": "/etc/puppet/manifests/ntp.pp", "modules": ["/etc/puppet/modules"]},
    )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        name = one_line((text(parameters, "manifest") or "").rpartition("/")[2], 40)
        what = f"puppet apply {name}" if name else "puppet apply"
        return node_action.described(what, parameters)

    def _work(self, machine: Machine, stop: StopSignal) -> Outcome:  # noqa: ARG002
        manifest, modules = self.parameters["manifest"], self.parameters.get("modules")
        program = ["puppet", "apply", "--detailed-exitcodes"]
        program += ["--modulepath", ":".join(modules)] if modules else []
        name = one_line(f"puppet apply {manifest}", node_action.SHOWN)
        self._ended = ended = node_action.run(
            machine,
            [*program, manifest],
            name,
            output=self.context.output,
            cwd=self.parameters.get("cwd"),
        )
        if ended.why is not None or ended.code not in _PUPPET:
            raise node_action.failure(name, ended)
        return _PUPPET[ended.code]


class Reboot(node_action.NodeAction):
    """Restart a node, and wait until its kernel has a new boot id.

    The wait ends after ten minutes, or at the action's own time-out. The machine that the applier
    runs on is not restarted.
    """

    TYPE, NEEDS = "reboot", ("address",)
    SCHEMA: ClassVar[Mapping[str, Any]] = node_action.parameters({}, {}, {"node": "3"})

    _before: str | None = None

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        return node_action.described("reboot", parameters)

    def _work(self, machine: Machine, stop: StopSignal) -> Outcome:
        self._before = _boot_id(machine)
        try:
            # The connection may break before the command ends. Not every PATH includes sbin.
            program = ["/bin/sh", "-c", 'PATH="$PATH:/usr/sbin:/sbin" exec reboot']
            ended = node_action.run(machine, program, "reboot", output=self.context.output)
            if ended.code:
                raise node_action.failure("reboot", ended)
        except ConnectionError as reason:
            if stop.is_set() and isinstance(reason, JobLost):
                raise
            self.context.output(f"{reason}\n")
        deadline, seen = time.monotonic() + BACK_S, "it is up as before"
        while time.monotonic() < deadline:
            if stop.wait(LOOK_S):
                raise ActionFailed("stopped before the node was back")
            try:
                if _boot_id(machine) != self._before:
                    return Outcome.CHANGED
                seen = "it is up as before"
            except (ActionFailed, OSError) as reason:
                # A node that shuts down or starts refuses connections in many ways.
                seen = str(reason)
        raise ActionFailed(f"the node has not started anew within {BACK_S:g} s: {seen}")

    def _look(self, machine: Machine) -> Verified:
        """Compare the boot id with the one before; IN_DOUBT after a crash, which loses that one."""
        if self._before is None:
            return Verified.IN_DOUBT
        return Verified.NOT_DONE if _boot_id(machine) == self._before else Verified.DONE


def _boot_id(machine: Machine) -> str:
    printed: list[str] = []
    ended = node_action.run(machine, ["cat", _BOOT_ID], "cat", output=printed.append)
    if ended.code != 0:
        raise node_action.failure(f"cat {_BOOT_ID}", ended)
    return "".join(printed).strip()
