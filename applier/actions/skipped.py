# SPDX-License-Identifier: Apache-2.0
"""A task that is skipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, text
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import AlreadyDone
from planner.states import Outcome


class Skipped(ActionPlugin):
    """End as SKIPPED, with a ``reason``; keeps the order between tasks before and after it."""

    TYPE = "skipped"
    USES_MACHINES = False
    RERUN_SAFE = True
    JOINS_WORK = True
    TAKES_WORKER = False
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"reason": schemas.TEXT},
        optional=schemas.ANY_RESOURCE,
        examples=[{"reason": "its condition is false: settings:ceph.enabled == true"}],
    )

    @classmethod
    def works_outside(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return False: it touches nothing."""
        return False

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return 0: it takes no time."""
        return 0.0

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``skipped: REASON``."""
        reason = text(parameters, "reason")
        return f"skipped: {one_line(reason)}" if reason else "skipped"

    def precheck(self) -> None:
        """Raise AlreadyDone with the reason."""
        raise AlreadyDone(self.parameters.get("reason") or "it is left out")

    def execute(self, stop: StopSignal) -> Outcome:  # noqa: ARG002
        """Do nothing."""
        return Outcome.OK

    def verify(self) -> Verified:
        """Return NOT_DONE: skipping it again does no harm."""
        return Verified.NOT_DONE
