# SPDX-License-Identifier: Apache-2.0
"""Action type ``announce``: a line in a log book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from oslo_config import cfg

from applier.contracts import ActionPlugin, StopSignal
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Touch
from planner.plan.states import Outcome


class Announce(ActionPlugin):
    """Append ``message`` as a line to the file ``path``, unless it is there already.

    The line begins with the name of the site, if the option ``site`` has one.
    """

    TYPE = "announce"
    #: A line that was written is found by the precheck.
    RERUN_SAFE = True
    #: It runs no commands.
    USES_MACHINES = False
    SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["path", "message"],
        "properties": {
            "path": {"type": "string", "minLength": 1, "description": "the file; made if missing"},
            "message": {"type": "string", "pattern": "^[^\\n]+$", "description": "one line"},
            "resource_id": {"type": "string", "description": "the host that the message is about"},
        },
        "examples": [{"path": "announcements.txt", "message": "rack r1 is empty"}],
    }

    #: Set in ``[watcher_actions.announce]``; the values are in ``self.context.options``.
    OPTIONS = (
        cfg.StrOpt(
            "site",
            default="",
            sample_default="Berlin",
            help="Name of this site, written before each announcement.",
        ),
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        """The file, so that a limit can bound its writers, and the host that it is about."""
        kinds = {"path": "file", "resource_id": "node"}
        return [Touch(f"{k}:{parameters[key]}") for key, k in kinds.items() if parameters.get(key)]

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``announce 'MESSAGE'``."""
        return f"announce {parameters.get('message')!r}"

    def precheck(self) -> None:
        """Done if the line stands in the file."""
        path = Path(self.parameters["path"])
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return
        except OSError as reason:
            raise ActionFailed(f"{path} cannot be read: {reason.strerror}") from reason
        if self._line() in lines:
            raise AlreadyDone(f"{path} says so already")

    def execute(self, stop: StopSignal) -> Outcome:
        """Write the line."""
        path = Path(self.parameters["path"])
        if stop.is_set():
            raise ActionFailed("stopped before it began")
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{self._line()}\n")
        except OSError as reason:
            raise ActionFailed(f"{path} cannot be written: {reason.strerror}") from reason
        return Outcome.CHANGED

    def _line(self) -> str:
        site, message = self.context.options["site"], self.parameters["message"]
        return f"{site}: {message}" if site else str(message)
