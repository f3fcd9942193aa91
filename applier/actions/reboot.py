"""Restart a node."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import commands, nodes
from applier.contracts import ActionPlugin, Machine, StopSignal, Verified
from applier.errors import ActionFailed
from planner.states import Outcome

#: Seconds that a node may take to come back, unless the action has a time-out.
BACK_S = 600.0
#: Seconds between two looks whether it is back.
LOOK_S = 3.0
#: Changes each time that a machine starts.
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Reboot(ActionPlugin):
    """Restart a node, and wait until it has started anew.

    It has when the kernel's boot id is another than before; waited for is that, at most ten
    minutes, or the action's own time-out. The machine that the applier runs on is not restarted.
    """

    TYPE = "reboot"
    SCHEMA: ClassVar[Mapping[str, Any]] = nodes.parameters(
        {},
        {},
        examples=[{"node": "3"}, {"node": "3", "duration_s": 0.5}],
    )

    _before: str | None = None

    touches = staticmethod(nodes.touches)
    estimate = staticmethod(nodes.estimate)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``reboot on node 3``."""
        return nodes.described("reboot", parameters)

    def precheck(self) -> None:
        """Refuse to end the applier itself."""
        nodes.check(self, "address")

    def execute(self, stop: StopSignal) -> Outcome:
        """Restart it and wait."""
        return nodes.perform(self, lambda machine: self._restart(machine, stop), stop)

    def verify(self) -> Verified:
        """Compare the boot id with the one before; after a crash nobody knows that one."""
        return nodes.verified(self, self._look)

    def _restart(self, machine: Machine, stop: StopSignal) -> Outcome:
        self._before = _boot_id(machine)
        try:
            # It may be gone before it answers, and where sbin is searched differs.
            program = ["/bin/sh", "-c", 'PATH="$PATH:/usr/sbin:/sbin" exec reboot']
            ended = commands.run(machine, program, "reboot", output=self.context.output)
            if ended.code:
                raise commands.failure("reboot", ended)
        except ConnectionError as reason:
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
                # One that goes down or comes up refuses in many ways.
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
