# SPDX-License-Identifier: Apache-2.0
"""Write a text to a file on a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import machine_files, nodes, schemas
from applier.actions.parameters import one_line, text
from applier.contracts import ActionPlugin, Machine, StopSignal, Verified
from planner.states import Outcome

#: The most characters of a file that is in a document; copy_files copies larger ones.
_MOST = 16 * 1024 * 1024


class UploadFile(ActionPlugin):
    """Write ``data`` to a file and set its ``mode``; ok if both are right already.

    The file is replaced as a whole, and missing folders above it are made. Without ``mode`` it
    keeps its own, and a new file gets 0644.
    """

    TYPE = "upload_file"
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = nodes.parameters(
        {"path": schemas.TEXT, "data": {"type": "string", "maxLength": _MOST}},
        {"mode": schemas.FILE_MODE},
        {"path": "/etc/motd", "data": "node 3", "mode": "0644"},
    )

    touches = staticmethod(nodes.touches)
    works_outside = staticmethod(nodes.works_outside)
    estimate = staticmethod(nodes.estimate)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``write /etc/motd on node 3``, without the text."""
        path = one_line(text(parameters, "path") or "a file", 40)
        return nodes.described(f"write {path}", parameters)

    def precheck(self) -> None:
        """Raise ActionFailed if ``path`` or ``data`` is missing."""
        nodes.check(self, "path", "data")

    def execute(self, stop: StopSignal) -> Outcome:
        """Write the file, unless it is right already."""
        return nodes.perform(self, self._write, stop)

    def verify(self) -> Verified:
        """Compare the file with the wanted content and mode."""
        return nodes.verified(self, self._look)

    def _write(self, machine: Machine) -> Outcome:
        path, data = self.parameters["path"], self.parameters["data"].encode()
        return machine_files.put(machine, path, data, machine_files.mode_of(self.parameters))

    def _look(self, machine: Machine) -> Verified:
        path, data = self.parameters["path"], self.parameters["data"].encode()
        same = machine_files.is_same(
            machine.read(path), data, machine_files.mode_of(self.parameters)
        )
        return Verified.DONE if same else Verified.NOT_DONE
