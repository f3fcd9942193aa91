# SPDX-License-Identifier: Apache-2.0
"""Shut an instance down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier import contracts
from applier.actions import instances
from planner.states import Outcome


class Stop(contracts.ActionPlugin):
    """Shut an instance down; it stays on its host."""

    TYPE = "stop"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because the precheck finds that the instance is SHUTOFF.
    RERUN_SAFE = True
    JOINS_WORK = True
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = instances.PARAMETERS

    touches = staticmethod(instances.touches)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``stop web-1``."""
        return instances.described("stop", parameters)

    def precheck(self) -> None:
        """Raise AlreadyDone if the instance is gone or SHUTOFF."""
        instances.must_differ(self, "SHUTOFF")

    def execute(self, stop: contracts.StopSignal) -> Outcome:
        """Stop the instance."""
        self.context.cloud().set_instance_status(
            self.parameters["resource_id"], "SHUTOFF", stop, self.context.output
        )
        return Outcome.CHANGED

    def verify(self) -> contracts.Verified:
        """Check whether the instance is SHUTOFF."""
        return instances.has_status(self, "SHUTOFF")

    def revert(self, stop: contracts.StopSignal) -> Outcome:
        """Start the instance."""
        instance_id = self.parameters["resource_id"]
        instance = self.context.cloud().instance(instance_id)
        if instances.has_settled(instance, "ACTIVE"):
            return Outcome.OK
        self.context.cloud().set_instance_status(instance_id, "ACTIVE", stop, self.context.output)
        return Outcome.CHANGED

    def verify_revert(self) -> contracts.Verified:
        """Check whether the instance is ACTIVE."""
        return instances.has_status(self, "ACTIVE")
