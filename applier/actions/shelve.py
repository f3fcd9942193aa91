"""Take an instance off its host and keep it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import instances
from applier.actions.parameters import one_line, resource
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import AlreadyDone
from planner.states import Outcome


class Shelve(ActionPlugin):
    """Take an instance off its host, and keep it for later."""

    TYPE = "shelve"
    #: What is SHELVED is found by the precheck.
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = instances.PARAMETERS

    touches = staticmethod(instances.touches)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``shelve web-1``."""
        return one_line(f"shelve {resource(parameters, 'an instance')}")

    def precheck(self) -> None:
        """Done if it is gone or SHELVED."""
        if instances.found(self)["status"] == "SHELVED":
            raise AlreadyDone(f"{resource(self.parameters, 'instance')} is SHELVED already")

    def execute(self, stop: StopSignal) -> Outcome:
        """Shelve it."""
        self.context.cloud().set_instance_status(self.parameters["resource_id"], "SHELVED", stop)
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Look whether it is SHELVED."""
        instance = self.context.cloud().instance(self.parameters["resource_id"])
        if instance is None:
            return Verified.IN_DOUBT
        return Verified.DONE if instance["status"] == "SHELVED" else Verified.NOT_DONE
