"""Wait."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import schemas
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed
from planner.states import Outcome


class Sleep(ActionPlugin):
    """Wait ``duration`` seconds; fractions count, and a stop ends it early."""

    TYPE = "sleep"
    RERUN_SAFE = True
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"duration": {"type": "number", "minimum": 0, "description": "seconds"}},
        optional=schemas.ANY_RESOURCE,
        examples=[{"duration": 5}, {"duration": 0.25}],
    )

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:
        """Give the duration."""
        duration = parameters.get("duration")
        if isinstance(duration, bool) or not isinstance(duration, int | float):
            return None
        return float(duration) if 0 <= duration < math.inf else None

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Say ``sleep 5 s``."""
        duration = cls.estimate(parameters)
        return "sleep" if duration is None else f"sleep {duration:g} s"

    @classmethod
    def waits_s(cls, parameters: Mapping[str, Any]) -> float | None:
        """Give the duration: it does nothing else."""
        return cls.estimate(parameters)

    def execute(self, stop: StopSignal) -> Outcome:
        """Wait, without looking at the clock until the end."""
        duration = self.parameters["duration"]
        began = time.monotonic()
        if stop.wait(min(duration, threading.TIMEOUT_MAX)):
            passed = time.monotonic() - began
            raise ActionFailed(f"stopped after {passed:.1f} s of {duration:g} s")
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Nothing is lost by waiting again."""
        return Verified.NOT_DONE
