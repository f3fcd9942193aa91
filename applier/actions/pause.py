# SPDX-License-Identifier: Apache-2.0
"""Wait between two steps of a plan, without taking a worker."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import schemas
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed
from planner import ranges
from planner.states import Outcome


class Pause(ActionPlugin):
    """Wait ``seconds`` between two steps; it does not count against ``max_workers``."""

    TYPE = "pause"
    MAIN = "seconds"
    USES_MACHINES = False
    RERUN_SAFE = True
    JOINS_WORK = True
    TAKES_WORKER = False
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"seconds": ranges.SECONDS},
        optional=schemas.ANY_RESOURCE,
        examples=[{"seconds": 300}, {"seconds": 0.5}],
    )

    @classmethod
    def works_outside(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return False: it touches nothing."""
        return False

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:
        """Return the seconds, or None if they are not valid."""
        seconds = parameters.get("seconds")
        return float(seconds) if ranges.is_duration(seconds) else None

    @classmethod
    def waits_s(cls, parameters: Mapping[str, Any]) -> float | None:
        """Return the seconds: it does nothing but wait."""
        return cls.estimate(parameters)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``pause for 300 s``."""
        seconds = cls.estimate(parameters)
        return "pause" if seconds is None else f"pause for {seconds:g} s"

    def execute(self, stop: StopSignal) -> Outcome:
        """Wait, for a caller that executes it instead of setting a timer."""
        seconds = self.parameters["seconds"]
        if stop.wait(min(seconds, threading.TIMEOUT_MAX)):
            raise ActionFailed(f"stopped before {seconds:g} s were over")
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Return NOT_DONE: waiting again does no harm."""
        return Verified.NOT_DONE
