"""Remove an instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import Action, Stop, Verified
from applier.errors import AlreadyDone
from planner.model import Touch
from planner.states import Outcome


class Delete(Action):
    """Remove an instance for good."""

    TYPE = "delete"
    #: What is gone is found by the precheck, and uuids are not used twice.
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
        """Say ``delete web-1``."""
        return one_line(f"delete {resource(parameters, 'an instance')}")

    def precheck(self) -> None:
        """Done if it is gone."""
        instance = self.context.cloud().instance(self.parameters["resource_id"])
        if instance is None:
            name = resource(self.parameters, "instance")
            raise AlreadyDone(f"instance {name} does not exist any more")

    def execute(self, stop: Stop) -> Outcome:
        """Remove it."""
        self.context.cloud().delete_instance(self.parameters["resource_id"], stop)
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Look whether it is there."""
        there = self.context.cloud().instance(self.parameters["resource_id"])
        return Verified.DONE if there is None else Verified.NOT_DONE
