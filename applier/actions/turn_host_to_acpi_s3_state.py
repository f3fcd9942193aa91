"""Suspend a host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, resource, touch
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Effect, Touch
from planner.states import Outcome


class TurnHostToAcpiS3State(ActionPlugin):
    """Suspend a host to memory (ACPI S3); refused while ACTIVE instances are on it.

    The host is ``resource_name``, else ``resource_id``.
    """

    TYPE = "turn_host_to_acpi_s3_state"
    #: It sets a state: twice is once.
    RERUN_SAFE = True
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.TEXT},
        optional={
            "resource_name": schemas.HOST_NAME,
        },
        examples=[{"resource_id": "compute-4"}],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        """The host, which it takes down."""
        return touch("node", resource(parameters, ""), Effect.TAKES_DOWN)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``suspend compute-1``."""
        return one_line(f"suspend {resource(parameters, 'a host')}")

    def precheck(self) -> None:
        """Done if it is suspended; refused if there is no such host, or it is off."""
        host = resource(self.parameters, "")
        known = self.context.cloud().host(host)
        if known is None:
            raise ActionFailed(f"{host} cannot be suspended: there is no such host")
        if known["power"] == "suspended":
            raise AlreadyDone(f"{host} is suspended already")
        if known["power"] == "off":
            raise ActionFailed(f"{host} cannot be suspended: it is off")

    def execute(self, stop: StopSignal) -> Outcome:
        """Suspend it."""
        self.context.cloud().set_host_power(resource(self.parameters, ""), "suspended", stop)
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Look whether the host is suspended."""
        known = self.context.cloud().host(resource(self.parameters, ""))
        if known is None:
            return Verified.IN_DOUBT
        return Verified.DONE if known["power"] == "suspended" else Verified.NOT_DONE

    def revert(self, stop: StopSignal) -> Outcome:
        """Switch it on again."""
        host = resource(self.parameters, "")
        known = self.context.cloud().host(host)
        if known is not None and known["power"] == "on":
            return Outcome.OK
        self.context.cloud().set_host_power(host, "on", stop)
        return Outcome.CHANGED
