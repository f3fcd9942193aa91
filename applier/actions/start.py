# SPDX-License-Identifier: Apache-2.0
"""Start an instance that is off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier import contracts
from applier.actions import instances
from applier.actions.parameters import resource
from applier.errors import ActionFailed
from planner.states import Outcome


class Start(contracts.ActionPlugin):
    """Start an instance that is off, on its host."""

    TYPE = "start"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because the precheck finds that the instance is ACTIVE.
    RERUN_SAFE = True
    JOINS_WORK = True
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = instances.PARAMETERS

    touches = staticmethod(instances.touches)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``start web-1``."""
        return instances.described("start", parameters)

    def precheck(self) -> None:
        """Raise AlreadyDone if the instance is gone or ACTIVE, ActionFailed if it is SHELVED."""
        instances.must_differ(self, "ACTIVE")
        if instances.found(self)["status"] == "SHELVED":
            name = resource(self.parameters, "instance")
            raise ActionFailed(f"{name} is SHELVED: it is unshelved, not started")

    def execute(self, stop: contracts.StopSignal) -> Outcome:
        """Start the instance."""
        self.context.cloud().set_instance_status(
            self.parameters["resource_id"], "ACTIVE", stop, self.context.output
        )
        return Outcome.CHANGED

    def verify(self) -> contracts.Verified:
        """Check whether the instance is ACTIVE."""
        return instances.has_status(self, "ACTIVE")

    def revert(self, stop: contracts.StopSignal) -> Outcome:
        """Stop the instance."""
        instance_id = self.parameters["resource_id"]
        instance = self.context.cloud().instance(instance_id)
        if instances.has_settled(instance, "SHUTOFF"):
            return Outcome.OK
        self.context.cloud().set_instance_status(instance_id, "SHUTOFF", stop, self.context.output)
        return Outcome.CHANGED

    def verify_revert(self) -> contracts.Verified:
        """Check whether the instance is SHUTOFF."""
        return instances.has_status(self, "SHUTOFF")
