# SPDX-License-Identifier: Apache-2.0
"""Restart a node."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import commands, nodes
from applier.contracts import ActionPlugin, Machine, StopSignal, Verified
from applier.errors import ActionFailed, JobLost
from planner.states import Outcome

#: Seconds that a node may take to restart.
BACK_S = 600.0
#: Seconds between two checks whether it has restarted.
LOOK_S = 3.0
#: The file with the boot id, which the kernel generates at each start.
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Reboot(ActionPlugin):
    """Restart a node, and wait until its kernel has a new boot id.

    The wait ends after ten minutes, or at the action's own time-out. The machine that the applier
    runs on is not restarted.
    """

    TYPE = "reboot"
    SCHEMA: ClassVar[Mapping[str, Any]] = nodes.parameters({}, {}, {"node": "3"})

    _before: str | None = None

    touches = staticmethod(nodes.touches)
    works_outside = staticmethod(nodes.works_outside)
    runs_on = staticmethod(nodes.runs_on)
    estimate = staticmethod(nodes.estimate)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``reboot on node 3``."""
        return nodes.described("reboot", parameters)

    def precheck(self) -> None:
        """Raise ActionFailed without ``address``: this machine is not restarted."""
        nodes.check(self, "address")

    def execute(self, stop: StopSignal) -> Outcome:
        """Restart the node and wait until it is back."""
        return nodes.perform(self, lambda machine: self._restart(machine, stop), stop)

    def verify(self) -> Verified:
        """Compare the boot id with the one before; IN_DOUBT after a crash, which loses that one."""
        return nodes.verified(self, self._look)

    def _restart(self, machine: Machine, stop: StopSignal) -> Outcome:
        self._before = _boot_id(machine)
        try:
            # The connection may break before the command ends. Not every PATH includes sbin.
            program = ["/bin/sh", "-c", 'PATH="$PATH:/usr/sbin:/sbin" exec reboot']
            ended = commands.run(machine, program, "reboot", output=self.context.output)
            if ended.code:
                raise commands.failure("reboot", ended)
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
        if self._before is None:
            return Verified.IN_DOUBT
        return Verified.NOT_DONE if _boot_id(machine) == self._before else Verified.DONE


def _boot_id(machine: Machine) -> str:
    printed: list[str] = []
    ended = commands.run(machine, ["cat", _BOOT_ID], "cat", output=printed.append)
    if ended.code != 0:
        raise commands.failure(f"cat {_BOOT_ID}", ended)
    return "".join(printed).strip()
