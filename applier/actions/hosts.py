# SPDX-License-Identifier: Apache-2.0
"""The action types that change the state of a host: its power, or whether it takes instances.

The host of each is ``resource_name``, else ``resource_id``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.cloud_states import StateChange
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Effect, Touch

#: Maps a requested state to: the status of the service, the verb in descriptions, the effect on the
#: host.
_SERVICE_STATES = {
    "enabled": ("enabled", "enable", Effect.ENABLES),
    "up": ("enabled", "enable", Effect.ENABLES),
    "disabled": ("disabled", "disable", Effect.DISABLES),
    "down": ("disabled", "disable", Effect.DISABLES),
}
_POWER_EFFECTS = {"on": Effect.BRINGS_UP, "off": Effect.TAKES_DOWN}


class ChangeNovaServiceState(StateChange):
    """Enable (``enabled``, ``up``) or disable (``disabled``, ``down``) a host for new instances.

    The host is ``resource_name``, else ``resource_id``.
    """

    TYPE, FIELD = "change_nova_service_state", "status"
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.RESOURCE, "state": {"enum": list(_SERVICE_STATES)}},
        optional={
            "resource_name": schemas.HOST_NAME,
            "disabled_reason": schemas.TEXT_OR_NULL,
        },
        examples=[
            {"resource_id": "compute-1", "state": "disabled", "disabled_reason": "maintenance"},
            {"resource_id": "17", "resource_name": "compute-1", "state": "enabled"},
        ],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        _, _, effect = _SERVICE_STATES.get(text(parameters, "state") or "", (None, None, None))
        return touch("node", resource(parameters, ""), effect)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        state = text(parameters, "state") or ""
        _, verb, _ = _SERVICE_STATES.get(state, (None, "enable or disable", None))
        return one_line(f"{verb} {resource(parameters, 'a host')}")

    def precheck(self) -> None:
        host, status = resource(self.parameters, ""), self._wanted()
        found = self._look(status)
        if found is Verified.IN_DOUBT:
            raise AlreadyDone(f"there is no compute service on {host}")
        if found is Verified.DONE:
            raise AlreadyDone(f"{host} is {status} already")

    def _wanted(self) -> str:
        return _SERVICE_STATES[self.parameters["state"]][0]

    def _before(self) -> str:
        return "disabled" if self._wanted() == "enabled" else "enabled"

    def _known(self) -> Mapping[str, Any] | None:
        return self.context.cloud().service(resource(self.parameters, ""))

    def _change(self, state: str, stop: StopSignal) -> None:
        """Set the status; the reason is recorded only when ``execute`` disables the service."""
        disables = state == "disabled" == self._wanted()
        reason = self.parameters.get("disabled_reason") if disables else None
        host = resource(self.parameters, "")
        self.context.cloud().set_service_status(host, state, reason, stop, self.context.output)


class HostPower(StateChange):
    """Brings a host into a power state."""

    FIELD, REVERTIBLE = "power", True

    def precheck(self) -> None:
        host, power = resource(self.parameters, ""), self._wanted()
        known = self._known()
        done = power if power == "suspended" else f"switched {power}"
        if known is None:
            raise ActionFailed(f"{host} cannot be {done}: there is no such host")
        if known["power"] == power:
            raise AlreadyDone(f"{host} is {power} already")
        if power == "suspended" and known["power"] == "off":
            raise ActionFailed(f"{host} cannot be suspended: it is off")

    def _known(self) -> Mapping[str, Any] | None:
        return self.context.cloud().host(resource(self.parameters, ""))

    def _change(self, state: str, stop: StopSignal) -> None:
        host = resource(self.parameters, "")
        self.context.cloud().set_host_power(host, state, stop, self.context.output)


class ChangeNodePowerState(HostPower):
    """Switch a host on or off; switching it off is refused while instances run on it.

    The host is ``resource_name``, else ``resource_id``.
    """

    TYPE = "change_node_power_state"
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.RESOURCE, "state": {"enum": list(_POWER_EFFECTS)}},
        optional={"resource_name": schemas.HOST_NAME},
        examples=[
            {"resource_id": "compute-4", "state": "off"},
            {"resource_id": "17", "resource_name": "compute-4", "state": "on"},
        ],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        effect = _POWER_EFFECTS.get(text(parameters, "state") or "")
        return touch("node", resource(parameters, ""), effect)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        state = text(parameters, "state")
        verb = state if state in _POWER_EFFECTS else "on or off"
        return one_line(f"power {verb} {resource(parameters, 'a host')}")

    def _wanted(self) -> Any:
        return self.parameters["state"]

    def _before(self) -> str:
        return "off" if self._wanted() == "on" else "on"


class TurnHostToAcpiS3State(HostPower):
    """Suspend a host to memory (ACPI S3); refused while instances that run are on it.

    The host is ``resource_name``, else ``resource_id``. OpenStack refuses it: Ironic cannot.
    """

    TYPE = "turn_host_to_acpi_s3_state"
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.RESOURCE},
        optional={"resource_name": schemas.HOST_NAME},
        examples=[{"resource_id": "compute-4"}],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        return touch("node", resource(parameters, ""), Effect.TAKES_DOWN)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        return one_line(f"suspend {resource(parameters, 'a host')}")

    def _wanted(self) -> str:
        return "suspended"

    def _before(self) -> str:
        return "on"
