# SPDX-License-Identifier: Apache-2.0
"""Delete a member of a group whose definition is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import instances, schemas, server_definition
from applier.actions.parameters import resource
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.contracts.clouds import Cloud
from applier.errors import ActionFailed
from planner.states import Outcome


class DeleteInstance(ActionPlugin):
    """Remove an instance, by UUID or unique name; it can be created again from its definition."""

    TYPE = "delete_instance"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because the precheck finds that the instance is gone.
    RERUN_SAFE = True
    #: False, because to undo it is to create an instance: two attempts at once would create two.
    JOINS_WORK = False
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": {**schemas.RESOURCE, "description": "UUID or unique name of the instance"}},
        optional={
            "resource_name": schemas.RESOURCE_NAME,
            "group": schemas.TEXT,
            "configuration": server_definition.CONFIGURATION,
            "places": server_definition.PLACES,
        },
        examples=[
            {
                "resource_id": "6a1f0001-0000-4000-8000-000000000001",
                "resource_name": "web-1",
                "group": "web",
                "configuration": {"ImageId": "web-1", "InstanceType": "m1.medium"},
            },
            {"resource_id": "web-2"},
        ],
    )

    touches = staticmethod(instances.touches)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``terminate web-1``."""
        return instances.described("terminate", parameters)

    def precheck(self) -> None:
        """Raise AlreadyDone if the instance is gone."""
        if self._found(self.context.cloud()) is None:
            raise instances.gone(self)

    def execute(self, stop: StopSignal) -> Outcome:
        """Delete the instance."""
        cloud = self.context.cloud()
        found = self._found(cloud)
        if found is None:
            return Outcome.OK
        cloud.delete_instance(found, stop, self.context.output)
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Check whether the instance still exists."""
        gone = self._found(self.context.cloud()) is None
        return Verified.DONE if gone else Verified.NOT_DONE

    def revert(self, stop: StopSignal) -> Outcome:
        """Create an instance of the same name and definition; it gets a new UUID."""
        name = resource(self.parameters, "instance")
        if not self.parameters.get("configuration"):
            raise ActionFailed(f"{name} cannot be created again: its definition is not on record")
        cloud = self.context.cloud()
        if self._is_back(cloud):
            return Outcome.OK
        instance_id = cloud.create_instance(
            name, server_definition.wanted(self.parameters), stop, self.context.output
        )
        self.context.output(f"{name} is {instance_id}\n")
        return Outcome.CREATED

    def verify_revert(self) -> Verified:
        """Check whether the instance exists, or one of its name was created to the end."""
        return Verified.DONE if self._is_back(self.context.cloud()) else Verified.NOT_DONE

    def _is_back(self, cloud: Cloud) -> bool:
        """Return whether the instance is there again.

        Either it still exists and no task runs on it, or one of its name was created to the end.
        """
        before = cloud.instance(self.parameters["resource_id"])
        if before is not None:
            return before["task"] is None
        again = cloud.instance_named(resource(self.parameters, "instance"))
        return again is not None and instances.is_built(cloud.instance(again))

    def _found(self, cloud: Cloud) -> str | None:
        """Return the UUID of the instance; one that was created again is found by its name."""
        instance_id: str = self.parameters["resource_id"]
        if cloud.instance(instance_id) is not None:
            return instance_id
        return cloud.instance_named(resource(self.parameters, instance_id))
