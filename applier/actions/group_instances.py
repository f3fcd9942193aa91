# SPDX-License-Identifier: Apache-2.0
"""The action types that create and delete the instances of a group from its definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.instances import gone
from applier.actions.parameters import one_line, resource, text, touch
from applier.contracts import ActionPlugin, StopSignal, Verified, clouds
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.model import Touch
from planner.plan.states import Outcome

_PLACES: schemas.Schema = {
    "type": "object",
    "description": "AvailabilityZones, VPCZoneIdentifier",
}
#: Property of a launch configuration -> field of the cloud, as in ``Cloud.create_instance``.
_FIELDS = {
    "ImageId": "image",
    "InstanceType": "flavor",
    "KeyName": "key_name",
    "UserData": "user_data",
    "SecurityGroups": "security_groups",
    "NovaSchedulerHints": "scheduler_hints",
    "BlockDeviceMappings": "block_device_mapping",
    "BlockDeviceMappingsV2": "block_device_mapping_v2",
    "Metadata": "metadata",
    "AvailabilityZones": "availability_zones",
    "VPCZoneIdentifier": "networks",
}
_CONFIGURATION: schemas.Schema = {
    "type": "object",
    "description": "properties of a launch configuration, or a resource with type and properties",
    # Planners warn of a property that is not among these: no cloud makes use of it.
    "properties": {name: {} for name in (*_FIELDS, *clouds.INSTANCE_FIELDS)},
}


def definition(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``flavor, image, key_name, user_data, ...`` as far as the parameters define them.

    >>> definition({"configuration": {"ImageId": "jobs-2", "InstanceType": "m1.small"}})
    {'image': 'jobs-2', 'flavor': 'm1.small'}
    >>> definition({"configuration": {"type": "OS::Nova::Server", "properties": {"flavor": "m1"}}})
    {'flavor': 'm1'}
    """
    found: dict[str, Any] = {}
    for part in (parameters.get("configuration"), parameters.get("places")):
        if isinstance(part, Mapping):
            inside = part.get("properties", part.get("Properties"))
            found |= inside if isinstance(inside, Mapping) else part
    return {_FIELDS.get(key, key): value for key, value in found.items()}


class GroupInstance(ActionPlugin):
    """Creates or deletes an instance of a group, and does the other to undo it.

    Safe to run again, because the precheck finds the instance, or that it is gone. JOINS_WORK is
    False, because two attempts at once would create two instances.
    """

    USES_CLOUD, USES_MACHINES, RERUN_SAFE, REVERTIBLE = True, False, True, True

    def _create(self, name: str, stop: StopSignal) -> Outcome:
        """Create the instance, and print its id."""
        instance_id = self.context.cloud().create_instance(
            name, definition(self.parameters), stop, self.context.output
        )
        self.context.output(f"{name} is {instance_id}\n")
        return Outcome.CREATED

    def _delete(self, instance_id: str | None, stop: StopSignal) -> Outcome:
        if instance_id is None:
            return Outcome.OK
        self.context.cloud().delete_instance(instance_id, stop, self.context.output)
        return Outcome.CHANGED


class CreateInstance(GroupInstance):
    """Create an instance with a new, unique name, from the definition of a group."""

    TYPE = "create_instance"
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"name": schemas.RESOURCE, "configuration": _CONFIGURATION},
        optional={"group": schemas.TEXT, "places": _PLACES},
        examples=[
            {
                "name": "JobServerGroup-2f1c04-1",
                "group": "JobServerGroup",
                "configuration": {"ImageId": "jobs-2", "InstanceType": "m1.small"},
                "places": {"AvailabilityZones": ["nova"]},
            },
            {
                "name": "web-3",
                "configuration": {
                    "type": "OS::Nova::Server",
                    "properties": {"flavor": "m1.small", "image": "web-2"},
                },
            },
        ],
    )

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        return touch("instance", text(parameters, "name"))

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        wanted = definition(parameters)
        what = [str(wanted[key]) for key in ("image", "flavor") if wanted.get(key)]
        name = text(parameters, "name") or "an instance"
        return one_line(f"create {name}" + (f" ({', '.join(what)})" if what else ""))

    def precheck(self) -> None:
        """Leave an instance that the cloud is still creating to :meth:`execute`."""
        cloud, name = self.context.cloud(), self.parameters["name"]
        known = self._known()
        if known is not None and known["status"] == "ERROR":
            raise ActionFailed(f"there is an instance {name} already, and it is in ERROR")
        if known is not None and known["task"] is None:
            raise AlreadyDone(f"there is an instance {name} already")
        flavor = definition(self.parameters).get("flavor")
        if flavor is not None and cloud.flavor(flavor) is None:
            raise ActionFailed(f"{name} cannot be created: there is no flavor {flavor}")

    def execute(self, stop: StopSignal) -> Outcome:
        return self._create(self.parameters["name"], stop)

    def verify(self) -> Verified:
        return Verified.DONE if _is_built(self._known()) else Verified.NOT_DONE

    def revert(self, stop: StopSignal) -> Outcome:
        return self._delete(self.context.cloud().instance_named(self.parameters["name"]), stop)

    def verify_revert(self) -> Verified:
        there = self.context.cloud().instance_named(self.parameters["name"])
        return Verified.DONE if there is None else Verified.NOT_DONE

    def _known(self) -> Mapping[str, Any] | None:
        cloud = self.context.cloud()
        found = cloud.instance_named(self.parameters["name"])
        return None if found is None else cloud.instance(found)


class DeleteInstance(GroupInstance):
    """Remove an instance, by UUID or unique name; it can be created again from its definition."""

    TYPE = "delete_instance"
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": {**schemas.RESOURCE, "description": "UUID or unique name of the instance"}},
        optional={
            "resource_name": schemas.RESOURCE_NAME,
            "group": schemas.TEXT,
            "configuration": _CONFIGURATION,
            "places": _PLACES,
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

    @classmethod
    def touches(cls, parameters: Mapping[str, Any]) -> Sequence[Touch]:
        return touch("instance", text(parameters, "resource_id"))

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        return one_line(f"terminate {resource(parameters, 'an instance')}")

    def precheck(self) -> None:
        if self._found() is None:
            raise gone(self.parameters)

    def execute(self, stop: StopSignal) -> Outcome:
        return self._delete(self._found(), stop)

    def verify(self) -> Verified:
        return Verified.DONE if self._found() is None else Verified.NOT_DONE

    def revert(self, stop: StopSignal) -> Outcome:
        """Create an instance of the same name and definition; it gets a new UUID."""
        name = resource(self.parameters, "instance")
        if not self.parameters.get("configuration"):
            raise ActionFailed(f"{name} cannot be created again: its definition is not on record")
        return Outcome.OK if self._is_back() else self._create(name, stop)

    def verify_revert(self) -> Verified:
        return Verified.DONE if self._is_back() else Verified.NOT_DONE

    def _is_back(self) -> bool:
        """Return whether the instance is there again.

        Either it still exists and no task runs on it, or one of its name was created to the end.
        """
        cloud = self.context.cloud()
        before = cloud.instance(self.parameters["resource_id"])
        if before is not None:
            return before["task"] is None
        again = cloud.instance_named(resource(self.parameters, "instance"))
        return again is not None and _is_built(cloud.instance(again))

    def _found(self) -> str | None:
        """Return the UUID of the instance; one that was created again is found by its name."""
        cloud = self.context.cloud()
        instance_id: str = self.parameters["resource_id"]
        if cloud.instance(instance_id) is not None:
            return instance_id
        return cloud.instance_named(resource(self.parameters, instance_id))


def _is_built(instance: Mapping[str, Any] | None) -> bool:
    """Return whether an instance exists, and was created to the end without an error."""
    return instance is not None and instance["status"] != "ERROR" and instance["task"] is None
