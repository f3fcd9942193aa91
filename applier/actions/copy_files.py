# SPDX-License-Identifier: Apache-2.0
"""Copy files from this machine to a node."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from applier.actions import machine_files, nodes, schemas
from applier.contracts import ActionPlugin, Content, Machine, StopSignal, Verified
from applier.errors import ActionFailed
from planner.states import Outcome

_FILE = {
    "type": "object",
    "required": ["src", "dst"],
    "additionalProperties": False,
    "properties": {
        "src": {**schemas.TEXT, "description": "path on this machine"},
        "dst": {**schemas.TEXT, "description": "path on the node"},
    },
}


class CopyFiles(ActionPlugin):
    """Copy each ``src`` of this machine to ``dst`` on the node; ok if all are there already.

    Each file is replaced as a whole, and missing folders above it are made. Without ``mode`` each
    file gets the mode of its source. A ``dst`` that ends with a slash is a folder.
    """

    TYPE = "copy_files"
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = nodes.parameters(
        {"files": {"type": "array", "items": _FILE, "minItems": 1}},
        {"mode": schemas.FILE_MODE},
        {
            "files": [{"src": "/var/lib/keys/nova.pub", "dst": "/etc/nova/nova.pub"}],
            "mode": "0600",
        },
    )

    touches = staticmethod(nodes.touches)
    works_outside = staticmethod(nodes.works_outside)
    estimate = staticmethod(nodes.estimate)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``copy 2 files on node 3``."""
        given = parameters.get("files")
        number = len(given) if isinstance(given, list | tuple) else 0
        what = f"copy {number} file{'' if number == 1 else 's'}" if number else "copy files"
        return nodes.described(what, parameters)

    def precheck(self) -> None:
        """Raise ActionFailed if ``files`` is missing, or a source cannot be read."""
        nodes.check(self, "files")
        if not nodes.is_simulated(self.parameters):
            for _ in self._sources():
                pass

    def execute(self, stop: StopSignal) -> Outcome:
        """Copy the files that differ."""
        return nodes.perform(self, self._copy, stop)

    def verify(self) -> Verified:
        """Compare each file on the node with its source."""
        return nodes.verified(self, self._look)

    def _copy(self, machine: Machine) -> Outcome:
        done = [
            machine_files.put(machine, dst, data, mode) for dst, (data, mode) in self._sources()
        ]
        return Outcome.CHANGED if Outcome.CHANGED in done else Outcome.OK

    def _look(self, machine: Machine) -> Verified:
        sources = self._sources()
        same = all(
            machine_files.is_same(machine.read(dst), data, mode) for dst, (data, mode) in sources
        )
        return Verified.DONE if same else Verified.NOT_DONE

    def _sources(self) -> Iterator[tuple[str, Content]]:
        """Yield each destination with the wanted content. Raises ActionFailed."""
        machines = self.context.machines or nodes.OWN
        here = machines.machine(None, threading.Event())
        mode = machine_files.mode_of(self.parameters)
        for file in self.parameters["files"]:
            found = here.read(file["src"])
            if found is None:
                raise ActionFailed(f"there is no file {file['src']} on this machine")
            name = os.path.basename(file["src"]) if file["dst"].endswith("/") else ""
            yield file["dst"] + name, Content(found.data, found.mode if mode is None else mode)
