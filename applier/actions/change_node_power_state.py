# SPDX-License-Identifier: Apache-2.0
"""Switch a host on or off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Effect, Touch
from planner.states import Outcome

_EFFECTS = {"on": Effect.BRINGS_UP, "off": Effect.TAKES_DOWN}


class ChangeNodePowerState(ActionPlugin):
    """Switch a host on or off; switching it off is refused while instances run on it.

    The host is ``resource_name``, else ``resource_id``.
    """

    TYPE = "change_node_power_state"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because setting the same state again changes nothing.
    RERUN_SAFE = True
    JOINS_WORK = True
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.RESOURCE, "state": {"enum": list(_EFFECTS)}},
        optional={
            "resource_name": schemas.HOST_NAME,
        },
        examples=[
            {"resource_id": "compute-4", "state": "off"},
            {"resource_id": "17", "resource_name": "compute-4", "state": "on"},
        ],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        """Return the host, which is taken down or brought up."""
        effect = _EFFECTS.get(text(parameters, "state") or "")
        return touch("node", resource(parameters, ""), effect)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``power off compute-1``."""
        state = text(parameters, "state")
        verb = state if state in _EFFECTS else "on or off"
        return one_line(f"power {verb} {resource(parameters, 'a host')}")

    def precheck(self) -> None:
        """Raise AlreadyDone if the host is in that state, ActionFailed if there is no such host."""
        host, power = resource(self.parameters, ""), self.parameters["state"]
        known = self.context.cloud().host(host)
        if known is None:
            raise ActionFailed(f"{host} cannot be switched {power}: there is no such host")
        if known["power"] == power:
            raise AlreadyDone(f"{host} is {power} already")

    def execute(self, stop: StopSignal) -> Outcome:
        """Switch the host on or off."""
        host, power = resource(self.parameters, ""), self.parameters["state"]
        self.context.cloud().set_host_power(host, power, stop, self.context.output)
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Compare the power state of the host with the requested one."""
        known = self.context.cloud().host(resource(self.parameters, ""))
        if known is None:
            return Verified.IN_DOUBT
        done = known["power"] == self.parameters["state"]
        return Verified.DONE if done else Verified.NOT_DONE

    def revert(self, stop: StopSignal) -> Outcome:
        """Switch the host to the opposite state."""
        host, power = resource(self.parameters, ""), self._opposite()
        known = self.context.cloud().host(host)
        if known is not None and known["power"] == power:
            return Outcome.OK
        self.context.cloud().set_host_power(host, power, stop, self.context.output)
        return Outcome.CHANGED

    def verify_revert(self) -> Verified:
        """Compare the power state of the host with the opposite state."""
        known = self.context.cloud().host(resource(self.parameters, ""))
        if known is None:
            return Verified.IN_DOUBT
        return Verified.DONE if known["power"] == self._opposite() else Verified.NOT_DONE

    def _opposite(self) -> str:
        return "off" if self.parameters["state"] == "on" else "on"
