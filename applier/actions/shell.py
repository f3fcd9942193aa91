"""Run a command."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import process, schemas
from applier.actions.parameters import one_line, text
from applier.contracts import Action, Stop
from applier.errors import ActionFailed
from planner.states import Outcome

_CODES = {
    "type": "array",
    "items": {"type": "integer", "minimum": 0, "maximum": 255},
    "uniqueItems": True,
}
#: Longest part of a command that is shown.
_COMMAND = 60
#: Longest part of the last line of output that a status message repeats.
_LAST_LINE = 200


class Shell(Action):
    """Run a program (``argv``) or a line for /bin/sh (``command``), and judge by the exit code.

    A code in ``changed_exit_codes`` (0 where nothing is said) is changed, one in ``ok_exit_codes``
    is ok, any other fails with the last line of the output. ``env`` is added to the environment.
    A stop, or ``timeout_s``, ends the whole process group. What it leaves running goes on.
    """

    TYPE = "shell"
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {},
        optional={
            "argv": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "command": {**schemas.TEXT, "description": "run by /bin/sh -c"},
            "env": {
                "type": "object",
                "propertyNames": {"pattern": "^[^=]+$"},
                "additionalProperties": {"type": "string"},
            },
            "cwd": schemas.TEXT,
            "timeout_s": {"type": "number", "exclusiveMinimum": 0},
            "ok_exit_codes": _CODES,
            "changed_exit_codes": _CODES,
            **schemas.ANY_RESOURCE,
        },
        oneOf=[{"required": ["argv"]}, {"required": ["command"]}],
        examples=[
            {"argv": ["systemctl", "restart", "haproxy"], "timeout_s": 60},
            {
                "command": "apt-get -y upgrade && reboot",
                "env": {"DEBIAN_FRONTEND": "noninteractive"},
            },
        ],
    )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``run: systemctl restart haproxy``; values of ``env`` are not shown."""
        line = _line(parameters)
        return f"run: {one_line(line, _COMMAND)}" if line else "run a command"

    def precheck(self) -> None:
        """Refuse an exit code that would mean two things."""
        self._codes()

    def execute(self, stop: Stop) -> Outcome:
        """Run it to its end."""
        ok, changed = self._codes()
        if stop.is_set():
            raise ActionFailed("stopped before it began")
        name, timeout_s = (
            one_line(_line(self.parameters), _COMMAND),
            self.parameters.get("timeout_s"),
        )
        try:
            ended = process.run(
                self.parameters.get("argv") or ["/bin/sh", "-c", self.parameters["command"]],
                stop=stop,
                output=self.context.output,
                env={**os.environ, **self.parameters.get("env", {})},
                cwd=self.parameters.get("cwd"),
                timeout_s=timeout_s,
            )
        except OSError as error:
            raise ActionFailed(
                f"{name}: cannot be started: {error.strerror}: {error.filename}"
            ) from error
        except ValueError as error:
            raise ActionFailed(f"{name}: cannot be started: {error}") from error
        if ended.why is None and ended.code in changed:
            return Outcome.CHANGED
        if ended.why is None and ended.code in ok:
            return Outcome.OK
        raise ActionFailed(f"{name}: {_ending(ended, timeout_s)}")

    def _codes(self) -> tuple[list[int], list[int]]:
        ok = self.parameters.get("ok_exit_codes", [])
        changed = self.parameters.get("changed_exit_codes", [] if 0 in ok else [0])
        both = sorted(set(ok) & set(changed))
        if both:
            codes = ", ".join(map(str, both))
            raise ActionFailed(f"exit code {codes} is in ok_exit_codes and in changed_exit_codes")
        return ok, changed


def _line(parameters: Mapping[str, Any]) -> str:
    argv = parameters.get("argv")
    if isinstance(argv, list | tuple):
        return shlex.join(map(str, argv))
    return text(parameters, "command") or ""


def _ending(ended: process.Ended, timeout_s: float | None) -> str:
    if ended.why == "timeout":
        text = f"had not ended after {timeout_s:g} s, and was stopped"
    elif ended.why == "stop":
        text = f"stopped after {ended.seconds:.1f} s"
    elif ended.code is not None and ended.code < 0:
        text = f"ended by signal {-ended.code} ({signal.strsignal(-ended.code)})"
    else:
        text = f"exit code {ended.code}"
    if ended.code is None:
        text += "; it could not be ended and goes on"
    last = one_line(ended.last_line, _LAST_LINE)
    return f"{text}: {last}" if last else text
