# SPDX-License-Identifier: Apache-2.0
"""Becomes a program of the product on another machine: ``machine.py NAME FAULT PROGRAM WORD...``.

The machine is this one under another name, so that the record tells what runs where. ``FAULT``
names a fault that is planted into the program, or is ``none``.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar

import world

from applier.actions import markers
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.storage import statements
from planner.plan.states import Outcome


class Work(ActionPlugin):
    """Works in the process of a service, in place of a command: it hears no stop.

    Until it has ended, it cannot tell whether it is at work somewhere, or never was.
    """

    TYPE: ClassVar[str] = world.IN_PROCESS
    SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object"}
    USES_MACHINES: ClassVar[bool] = False

    def execute(self, stop: StopSignal) -> Outcome:
        self._write("begin")
        time.sleep(self.parameters["seconds"])
        self._write("end")
        return Outcome.CHANGED

    def verify(self) -> Verified:
        events = world.read(Path(self.parameters["file"]))
        is_done = ("end", self.parameters["uuid"]) in events
        return Verified.DONE if is_done else Verified.NOT_DONE

    def _write(self, word: str) -> None:
        with Path(self.parameters["file"]).open("ab", buffering=0) as file:
            file.write(f"{word} {self.parameters['uuid']}\n".encode())


def requeue() -> None:
    """Offer a job again whose lease ran out, to be run once more."""
    fence = statements.FENCE_JOB
    offered = fence.replace("state = 'lost'", "state = 'todo', task = 'act'")
    assert offered != fence
    vars(statements)["FENCE_JOB"] = offered


def twice() -> None:
    """Begin work again that may still be done elsewhere."""
    Work.JOINS_WORK = True


FAULTS = {"none": lambda: None, "requeue": requeue, "twice": twice}


def main(name: str, fault: str, program: str, *words: str) -> None:
    """Plant the fault, and run the program in this process."""
    FAULTS[fault]()
    markers.Nop = Work  # type: ignore[misc,assignment]
    socket.gethostname = lambda: name
    sys.argv = [program, *words]
    (script,) = entry_points(group="console_scripts", name=program)
    sys.exit(script.load()())


if __name__ == "__main__":
    main(*sys.argv[1:])
