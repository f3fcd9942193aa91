"""Take an instance off its host and keep it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import Action, Stop, Verified
from applier.errors import AlreadyDone
from planner.model import Touch
from planner.states import Outcome


class Shelve(Action):
    """Take an instance off its host, and keep it for later."""

    TYPE = "shelve"
    #: What is SHELVED is found by the precheck.
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.INSTANCE_ID},
        optional={"resource_name": schemas.RESOURCE_NAME},
        examples=[
            {"resource_id": "6a1f0001-0000-4000-8000-000000000001", "resource_name": "web-1"},
        ],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        """The instance."""
        return touch("instance", text(parameters, "resource_id"))

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``shelve web-1``."""
        return one_line(f"shelve {resource(parameters, 'an instance')}")

    def precheck(self) -> None:
        """Done if it is gone or SHELVED."""
        instance = self.context.cloud().instance(self.parameters["resource_id"])
        name = resource(self.parameters, "instance")
        if instance is None:
            raise AlreadyDone(f"instance {name} does not exist any more")
        if instance["status"] == "SHELVED":
            raise AlreadyDone(f"{name} is SHELVED already")

    def execute(self, stop: Stop) -> Outcome:
        """Shelve it."""
        self.context.cloud().set_instance_status(self.parameters["resource_id"], "SHELVED", stop)
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Look whether it is SHELVED."""
        instance = self.context.cloud().instance(self.parameters["resource_id"])
        if instance is None:
            return Verified.IN_DOUBT
        return Verified.DONE if instance["status"] == "SHELVED" else Verified.NOT_DONE
