# SPDX-License-Identifier: Apache-2.0
"""Wait for a number of seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import schemas
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed
from planner import ranges
from planner.states import Outcome


class Sleep(ActionPlugin):
    """Wait ``duration`` seconds; fractions are allowed, and a stop ends the wait."""

    TYPE = "sleep"
    MAIN = "duration"
    USES_MACHINES = False
    RERUN_SAFE = True
    JOINS_WORK = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"duration": {**ranges.SECONDS, "description": "seconds"}},
        optional=schemas.ANY_RESOURCE,
        examples=[{"duration": 5}, {"duration": 0.25}],
    )

    @classmethod
    def works_outside(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return False: it touches nothing."""
        return False

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:
        """Return the duration, or None if it is not valid."""
        duration = parameters.get("duration")
        return float(duration) if ranges.is_duration(duration) else None

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``sleep 5 s``."""
        duration = cls.estimate(parameters)
        return "sleep" if duration is None else f"sleep {duration:g} s"

    @classmethod
    def waits_s(cls, parameters: Mapping[str, Any]) -> float | None:
        """Return the duration: it does nothing but wait."""
        return cls.estimate(parameters)

    def execute(self, stop: StopSignal) -> Outcome:
        """Wait until the time is over or ``stop`` is set."""
        duration = self.parameters["duration"]
        began = time.monotonic()
        if stop.wait(min(duration, threading.TIMEOUT_MAX)):
            passed = time.monotonic() - began
            raise ActionFailed(f"stopped after {passed:.1f} s of {duration:g} s")
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Return NOT_DONE: waiting again does no harm."""
        return Verified.NOT_DONE
