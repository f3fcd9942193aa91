# SPDX-License-Identifier: Apache-2.0
"""Delete an instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import instances
from applier.contracts import ActionPlugin, StopSignal, Verified
from planner.states import Outcome


class Delete(ActionPlugin):
    """Remove an instance for good."""

    TYPE = "delete"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because the precheck finds that the instance is gone, and no UUID is used twice.
    RERUN_SAFE = True
    JOINS_WORK = True
    SCHEMA: ClassVar[Mapping[str, Any]] = instances.PARAMETERS

    touches = staticmethod(instances.touches)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``delete web-1``."""
        return instances.described("delete", parameters)

    def precheck(self) -> None:
        """Raise AlreadyDone if the instance is gone."""
        instances.found(self)

    def execute(self, stop: StopSignal) -> Outcome:
        """Delete the instance."""
        self.context.cloud().delete_instance(
            self.parameters["resource_id"], stop, self.context.output
        )
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Check whether the instance still exists."""
        there = self.context.cloud().instance(self.parameters["resource_id"])
        return Verified.DONE if there is None else Verified.NOT_DONE
