"""Shut an instance down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier import contracts
from applier.actions import instances
from applier.actions.parameters import one_line, resource
from applier.errors import AlreadyDone
from planner.states import Outcome


class Stop(contracts.ActionPlugin):
    """Shut an instance down; it keeps its place on the host."""

    TYPE = "stop"
    #: What is SHUTOFF is found by the precheck.
    RERUN_SAFE = True
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = instances.PARAMETERS

    touches = staticmethod(instances.touches)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``stop web-1``."""
        return one_line(f"stop {resource(parameters, 'an instance')}")

    def precheck(self) -> None:
        """Done if it is gone or SHUTOFF."""
        if instances.found(self)["status"] == "SHUTOFF":
            raise AlreadyDone(f"{resource(self.parameters, 'instance')} is SHUTOFF already")

    def execute(self, stop: contracts.StopSignal) -> Outcome:
        """Stop it."""
        self.context.cloud().set_instance_status(self.parameters["resource_id"], "SHUTOFF", stop)
        return Outcome.CHANGED

    def verify(self) -> contracts.Verified:
        """Look whether it is SHUTOFF."""
        instance = self.context.cloud().instance(self.parameters["resource_id"])
        if instance is None:
            return contracts.Verified.IN_DOUBT
        done = instance["status"] == "SHUTOFF"
        return contracts.Verified.DONE if done else contracts.Verified.NOT_DONE

    def revert(self, stop: contracts.StopSignal) -> Outcome:
        """Start it again."""
        instance_id = self.parameters["resource_id"]
        instance = self.context.cloud().instance(instance_id)
        if instance is not None and instance["status"] == "ACTIVE":
            return Outcome.OK
        self.context.cloud().set_instance_status(instance_id, "ACTIVE", stop)
        return Outcome.CHANGED
