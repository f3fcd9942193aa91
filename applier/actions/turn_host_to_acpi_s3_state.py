# SPDX-License-Identifier: Apache-2.0
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
    """Suspend a host to memory (ACPI S3); refused while instances that run are on it.

    The host is ``resource_name``, else ``resource_id``. OpenStack refuses it: Ironic cannot.
    """

    TYPE = "turn_host_to_acpi_s3_state"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because setting the same state again changes nothing.
    RERUN_SAFE = True
    JOINS_WORK = True
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.RESOURCE},
        optional={
            "resource_name": schemas.HOST_NAME,
        },
        examples=[{"resource_id": "compute-4"}],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        """Return the host, which is taken down."""
        return touch("node", resource(parameters, ""), Effect.TAKES_DOWN)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``suspend compute-1``."""
        return one_line(f"suspend {resource(parameters, 'a host')}")

    def precheck(self) -> None:
        """Raise AlreadyDone if the host is suspended, ActionFailed if it is missing or off."""
        host = resource(self.parameters, "")
        known = self.context.cloud().host(host)
        if known is None:
            raise ActionFailed(f"{host} cannot be suspended: there is no such host")
        if known["power"] == "suspended":
            raise AlreadyDone(f"{host} is suspended already")
        if known["power"] == "off":
            raise ActionFailed(f"{host} cannot be suspended: it is off")

    def execute(self, stop: StopSignal) -> Outcome:
        """Suspend the host."""
        self.context.cloud().set_host_power(
            resource(self.parameters, ""), "suspended", stop, self.context.output
        )
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Check whether the host is suspended."""
        known = self.context.cloud().host(resource(self.parameters, ""))
        if known is None:
            return Verified.IN_DOUBT
        return Verified.DONE if known["power"] == "suspended" else Verified.NOT_DONE

    def revert(self, stop: StopSignal) -> Outcome:
        """Switch the host on."""
        host = resource(self.parameters, "")
        known = self.context.cloud().host(host)
        if known is not None and known["power"] == "on":
            return Outcome.OK
        self.context.cloud().set_host_power(host, "on", stop, self.context.output)
        return Outcome.CHANGED

    def verify_revert(self) -> Verified:
        """Check whether the host is on."""
        known = self.context.cloud().host(resource(self.parameters, ""))
        if known is None:
            return Verified.IN_DOUBT
        return Verified.DONE if known["power"] == "on" else Verified.NOT_DONE
