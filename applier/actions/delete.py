"""Remove an instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import instances
from applier.actions.parameters import one_line, resource
from applier.contracts import ActionPlugin, StopSignal, Verified
from planner.states import Outcome


class Delete(ActionPlugin):
    """Remove an instance for good."""

    TYPE = "delete"
    #: What is gone is found by the precheck, and uuids are not used twice.
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = instances.PARAMETERS

    touches = staticmethod(instances.touches)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``delete web-1``."""
        return one_line(f"delete {resource(parameters, 'an instance')}")

    def precheck(self) -> None:
        """Done if it is gone."""
        instances.found(self)

    def execute(self, stop: StopSignal) -> Outcome:
        """Remove it."""
        self.context.cloud().delete_instance(self.parameters["resource_id"], stop)
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Look whether it is there."""
        there = self.context.cloud().instance(self.parameters["resource_id"])
        return Verified.DONE if there is None else Verified.NOT_DONE
