# SPDX-License-Identifier: Apache-2.0
"""Take an instance that is shelved back to a host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import instances
from applier.contracts import ActionPlugin, StopSignal, Verified
from planner.states import Outcome


class Unshelve(ActionPlugin):
    """Take an instance that is shelved back to a host, and start it."""

    TYPE = "unshelve"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because the precheck finds that the instance is ACTIVE.
    RERUN_SAFE = True
    JOINS_WORK = True
    SCHEMA: ClassVar[Mapping[str, Any]] = instances.PARAMETERS

    touches = staticmethod(instances.touches)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``unshelve web-1``."""
        return instances.described("unshelve", parameters)

    def precheck(self) -> None:
        """Raise AlreadyDone if the instance is gone or ACTIVE."""
        instances.must_differ(self, "ACTIVE")

    def execute(self, stop: StopSignal) -> Outcome:
        """Unshelve the instance."""
        self.context.cloud().set_instance_status(
            self.parameters["resource_id"], "ACTIVE", stop, self.context.output
        )
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Check whether the instance is ACTIVE."""
        return instances.has_status(self, "ACTIVE")
