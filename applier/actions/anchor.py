# SPDX-License-Identifier: Apache-2.0
"""Do nothing: a synchronisation point that other actions wait for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import schemas
from applier.contracts import ActionPlugin, StopSignal, Verified
from planner.states import Outcome


class Anchor(ActionPlugin):
    """Synchronise: all actions after it wait for all before it; takes no worker and no time."""

    TYPE = "anchor"
    USES_MACHINES = False
    RERUN_SAFE = True
    JOINS_WORK = True
    TAKES_WORKER = False
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {}, optional=schemas.ANY_RESOURCE, examples=[{}]
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
    def waits_s(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return 0: it is never executed and ends at once."""
        return 0.0

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:  # noqa: ARG003
        """Return ``synchronise``."""
        return "synchronise"

    def execute(self, stop: StopSignal) -> Outcome:  # noqa: ARG002
        """Do nothing, for a caller that executes it instead of setting a timer."""
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Return NOT_DONE: running it again does no harm."""
        return Verified.NOT_DONE
