# SPDX-License-Identifier: Apache-2.0
"""Create a member of a group from its definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from applier.actions import instances, schemas, server_definition
from applier.actions.parameters import one_line, text, touch
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.model import Touch
from planner.states import Outcome


class CreateInstance(ActionPlugin):
    """Create an instance with a new, unique name, from the definition of a group."""

    TYPE = "create_instance"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because the precheck finds an instance of that name.
    RERUN_SAFE = True
    REVERTIBLE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"name": schemas.RESOURCE, "configuration": server_definition.CONFIGURATION},
        optional={"group": schemas.TEXT, "places": server_definition.PLACES},
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
        """Return the new instance, by its name."""
        return touch("instance", text(parameters, "name"))

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``create JobServerGroup-2f1c04-1 (jobs-2, m1.small)``."""
        wanted = server_definition.wanted(parameters)
        what = [str(wanted[key]) for key in ("image", "flavor") if wanted.get(key)]
        name = text(parameters, "name") or "an instance"
        return one_line(f"create {name}" + (f" ({', '.join(what)})" if what else ""))

    def precheck(self) -> None:
        """Raise AlreadyDone if the name exists, ActionFailed if there is no such flavor.

        An instance that the cloud is still creating is followed by :meth:`execute`.
        """
        cloud, name = self.context.cloud(), self.parameters["name"]
        known = self._known()
        if known is not None and known["status"] == "ERROR":
            raise ActionFailed(f"there is an instance {name} already, and it is in ERROR")
        if known is not None and known["task"] is None:
            raise AlreadyDone(f"there is an instance {name} already")
        flavor = server_definition.wanted(self.parameters).get("flavor")
        if flavor is not None and cloud.flavor(flavor) is None:
            raise ActionFailed(f"{name} cannot be created: there is no flavor {flavor}")

    def execute(self, stop: StopSignal) -> Outcome:
        """Create the instance, and print its id."""
        name = self.parameters["name"]
        wanted = server_definition.wanted(self.parameters)
        instance_id = self.context.cloud().create_instance(name, wanted, stop, self.context.output)
        self.context.output(f"{name} is {instance_id}\n")
        return Outcome.CREATED

    def verify(self) -> Verified:
        """Check whether an instance of this name exists, and was created to the end."""
        return Verified.DONE if instances.is_built(self._known()) else Verified.NOT_DONE

    def revert(self, stop: StopSignal) -> Outcome:
        """Delete the instance."""
        found = self.context.cloud().instance_named(self.parameters["name"])
        if found is None:
            return Outcome.OK
        self.context.cloud().delete_instance(found, stop, self.context.output)
        return Outcome.CHANGED

    def verify_revert(self) -> Verified:
        """Check whether an instance of this name still exists."""
        there = self.context.cloud().instance_named(self.parameters["name"])
        return Verified.DONE if there is None else Verified.NOT_DONE

    def _known(self) -> Mapping[str, Any] | None:
        cloud = self.context.cloud()
        found = cloud.instance_named(self.parameters["name"])
        return None if found is None else cloud.instance(found)
