# SPDX-License-Identifier: Apache-2.0
"""Action type ``inspect_rack``: a program that outlives the applier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.contracts import ActionPlugin, StopSignal
from applier.errors import ActionFailed
from planner.plan.states import Outcome


class InspectRack(ActionPlugin):
    """Run the site's ``program`` with the name of a rack; it may take hours."""

    TYPE = "inspect_rack"
    SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["program", "rack"],
        "properties": {
            "program": {"type": "string", "minLength": 1, "description": "a program here"},
            "rack": {"type": "string", "minLength": 1, "description": "its only argument"},
        },
        "examples": [{"program": "/usr/local/bin/inspect-rack", "rack": "r1"}],
    }

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``inspect rack 'RACK'``."""
        return f"inspect rack {parameters.get('rack')!r}"

    @classmethod
    def runs_on(cls, parameters: Mapping[str, Any]) -> Sequence[str | None]:  # noqa: ARG003
        """This machine."""
        return (None,)

    def execute(self, stop: StopSignal) -> Outcome:
        """Run the program to its end, whoever started it."""
        program = [self.parameters["program"], self.parameters["rack"]]
        if stop.is_set():
            raise ActionFailed("stopped before it began")
        try:
            ended = self.context.run(program, stop)
        except FileNotFoundError as reason:
            raise ActionFailed(f"{program[0]} is not installed") from reason
        if ended.code != 0 or ended.why is not None:
            raise ActionFailed(f"exit code {ended.code}: {ended.last_line}")
        return Outcome.CHANGED
