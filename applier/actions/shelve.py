# SPDX-License-Identifier: Apache-2.0
"""Take an instance off its host without deleting it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import instances
from applier.contracts import ActionPlugin, StopSignal, Verified
from planner.states import Outcome


class Shelve(ActionPlugin):
    """Take an instance off its host, and keep it for later."""

    TYPE = "shelve"
    USES_CLOUD = True
    USES_MACHINES = False
    #: True, because the precheck finds that the instance is SHELVED.
    RERUN_SAFE = True
    JOINS_WORK = True
    SCHEMA: ClassVar[Mapping[str, Any]] = instances.PARAMETERS

    touches = staticmethod(instances.touches)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``shelve web-1``."""
        return instances.described("shelve", parameters)

    def precheck(self) -> None:
        """Raise AlreadyDone if the instance is gone or SHELVED."""
        instances.must_differ(self, "SHELVED")

    def execute(self, stop: StopSignal) -> Outcome:
        """Shelve the instance."""
        self.context.cloud().set_instance_status(
            self.parameters["resource_id"], "SHELVED", stop, self.context.output
        )
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Check whether the instance is SHELVED."""
        return instances.has_status(self, "SHELVED")
