# SPDX-License-Identifier: Apache-2.0
"""Change the flavor of an instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import instances, schemas
from applier.actions.parameters import one_line, resource, text
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.states import Outcome


class Resize(ActionPlugin):
    """Change the flavor of an instance."""

    TYPE = "resize"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because the precheck finds that the instance has the flavor.
    RERUN_SAFE = True
    JOINS_WORK = True
    _had_task = False
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"resource_id": schemas.INSTANCE_ID, "flavor": schemas.TEXT},
        optional={"resource_name": schemas.RESOURCE_NAME},
        examples=[
            {
                "resource_id": "6a1f0001-0000-4000-8000-000000000001",
                "resource_name": "web-1",
                "flavor": "m1.large",
            }
        ],
    )

    touches = staticmethod(instances.touches)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``resize web-1 to m1.large``."""
        flavor = text(parameters, "flavor")
        words = instances.described("resize", parameters)
        return one_line(f"{words} to {flavor}" if flavor else words)

    def precheck(self) -> None:
        """Check the instance and the flavor.

        Raises AlreadyDone if the instance is gone or has the flavor, ActionFailed if there is no
        such flavor.
        """
        cloud, flavor = self.context.cloud(), self.parameters["flavor"]
        name = resource(self.parameters, "instance")
        instance = instances.found(self)
        known = cloud.flavor(flavor)
        if known is None:
            raise ActionFailed(f"{name} cannot become {flavor}: there is no such flavor")
        self._had_task = instance["task"] is not None
        if instance["flavor"] == known["name"] and not self._had_task:
            raise AlreadyDone(f"{name} is {flavor} already")

    def execute(self, stop: StopSignal) -> Outcome:
        """Resize the instance.

        If a task ran during the precheck, check again: it may have been this resize, and be over.
        """
        if self._had_task:
            self.precheck()
        self.context.cloud().resize(
            self.parameters["resource_id"], self.parameters["flavor"], stop, self.context.output
        )
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Compare the flavor of the instance with the requested one."""
        instance = self.context.cloud().instance(self.parameters["resource_id"])
        if instance is None:
            return Verified.IN_DOUBT
        known = self.context.cloud().flavor(self.parameters["flavor"])
        wanted = known["name"] if known else self.parameters["flavor"]
        done = instance["flavor"] == wanted and instance["task"] is None
        return Verified.DONE if done else Verified.NOT_DONE
