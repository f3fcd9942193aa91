# SPDX-License-Identifier: Apache-2.0
"""Enable or disable the compute service of a host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import AlreadyDone
from planner.model import Effect, Touch
from planner.states import Outcome

#: Maps a requested state to: the status of the service, the verb in descriptions, the effect on the
#: host.
_STATES = {
    "enabled": ("enabled", "enable", Effect.ENABLES),
    "up": ("enabled", "enable", Effect.ENABLES),
    "disabled": ("disabled", "disable", Effect.DISABLES),
    "down": ("disabled", "disable", Effect.DISABLES),
}


class ChangeNovaServiceState(ActionPlugin):
    """Enable (``enabled``, ``up``) or disable (``disabled``, ``down``) a host for new instances.

    The host is ``resource_name``, else ``resource_id``.
    """

    TYPE = "change_nova_service_state"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because setting the same state again changes nothing.
    RERUN_SAFE = True
    JOINS_WORK = True
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.RESOURCE, "state": {"enum": list(_STATES)}},
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
        """Return the host, which is enabled or disabled."""
        _, _, effect = _STATES.get(text(parameters, "state") or "", (None, None, None))
        return touch("node", resource(parameters, ""), effect)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``disable compute-1``."""
        _, verb, _ = _STATES.get(text(parameters, "state") or "", (None, "enable or disable", None))
        return one_line(f"{verb} {resource(parameters, 'a host')}")

    def precheck(self) -> None:
        """Raise AlreadyDone if there is no such service, or it has that status."""
        host, status = self._wanted()
        service = self.context.cloud().service(host)
        if service is None:
            raise AlreadyDone(f"there is no compute service on {host}")
        if service["status"] == status:
            raise AlreadyDone(f"{host} is {status} already")

    def execute(self, stop: StopSignal) -> Outcome:
        """Set the status; a reason is recorded only when the service is disabled."""
        host, status = self._wanted()
        reason = self.parameters.get("disabled_reason") if status == "disabled" else None
        self.context.cloud().set_service_status(host, status, reason, stop, self.context.output)
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Compare the status of the service with the requested one."""
        host, status = self._wanted()
        service = self.context.cloud().service(host)
        if service is None:
            return Verified.IN_DOUBT
        return Verified.DONE if service["status"] == status else Verified.NOT_DONE

    def revert(self, stop: StopSignal) -> Outcome:
        """Set the opposite status, without a reason."""
        host, status = self._wanted()
        before = "disabled" if status == "enabled" else "enabled"
        service = self.context.cloud().service(host)
        if service is not None and service["status"] == before:
            return Outcome.OK
        self.context.cloud().set_service_status(host, before, None, stop, self.context.output)
        return Outcome.CHANGED

    def _wanted(self) -> tuple[str, str]:
        return resource(self.parameters, ""), _STATES[self.parameters["state"]][0]
