"""Put a text into a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import files, nodes, schemas
from applier.actions.parameters import one_line, text
from applier.contracts import ActionPlugin, Machine, StopSignal, Verified
from planner.states import Outcome


class UploadFile(ActionPlugin):
    """Make a file hold ``data`` and have ``mode``; ok if it does already.

    The file is replaced as a whole, and folders above it are made. Without ``mode`` it keeps its
    own, and a new one gets 0644.
    """

    TYPE = "upload_file"
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = nodes.parameters(
        {"path": schemas.TEXT, "data": {"type": "string"}},
        {"mode": schemas.FILE_MODE},
        examples=[
            {
                "path": "/etc/motd",
                "data": "node 3",
                "mode": "0644",
            },
            {"node": "3", "duration_s": 0.5},
        ],
    )

    touches = staticmethod(nodes.touches)
    estimate = staticmethod(nodes.estimate)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``write /etc/motd on node 3``; what is written is not shown."""
        path = one_line(text(parameters, "path") or "a file", 40)
        return nodes.described(f"write {path}", parameters)

    def precheck(self) -> None:
        """Refuse what would run without a path or a text."""
        nodes.check(self, "path", "data")

    def execute(self, stop: StopSignal) -> Outcome:
        """Write it, unless it is there."""
        return nodes.perform(self, self._write, stop)

    def verify(self) -> Verified:
        """Look whether the file is as it should be."""
        return nodes.verified(self, self._look)

    def _write(self, machine: Machine) -> Outcome:
        path, data = self.parameters["path"], self.parameters["data"].encode()
        return files.put(machine, path, data, files.mode_of(self.parameters))

    def _look(self, machine: Machine) -> Verified:
        path, data = self.parameters["path"], self.parameters["data"].encode()
        same = files.is_same(machine.read(path), data, files.mode_of(self.parameters))
        return Verified.DONE if same else Verified.NOT_DONE
