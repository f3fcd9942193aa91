# SPDX-License-Identifier: Apache-2.0
"""The action types that touch nothing: they mark a place in a plan, or wait there.

They use no cloud and no machine, take no time or a known one, and do no harm when run again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, resource, text
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner.plan.states import Outcome
from planner.schemas import ranges


class Marker(ActionPlugin):
    """Touches nothing, and takes no time."""

    USES_MACHINES, RERUN_SAFE, JOINS_WORK = False, True, True

    @classmethod
    def works_outside(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        return False

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        return 0.0

    def execute(self, stop: StopSignal) -> Outcome:  # noqa: ARG002
        """Do nothing, for a caller that executes it although it ends before that."""
        return Outcome.CHANGED

    def verify(self) -> Verified:
        return Verified.NOT_DONE


class Anchor(Marker):
    """Synchronise: all actions after it wait for all before it; takes no worker and no time."""

    TYPE, TAKES_WORKER = "anchor", False
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {}, optional=schemas.ANY_RESOURCE, examples=[{}]
    )

    @classmethod
    def waits_s(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        return 0.0

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:  # noqa: ARG003
        return "synchronise"


class Skipped(Marker):
    """End as SKIPPED, with a ``reason``; keeps the order between tasks before and after it."""

    TYPE, TAKES_WORKER = "skipped", False
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"reason": schemas.TEXT},
        optional=schemas.ANY_RESOURCE,
        examples=[{"reason": "its condition is false: settings:ceph.enabled == true"}],
    )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        reason = text(parameters, "reason")
        return f"skipped: {one_line(reason)}" if reason else "skipped"

    def precheck(self) -> None:
        raise AlreadyDone(self.parameters.get("reason") or "it is left out")


_FLAG = {"type": "boolean"}


class Nop(Marker):
    """Print a message, if there is one, and change nothing, in no time; counts as changed.

    ``skip_pre_condition`` makes the precheck find it done, ``fail_pre_condition`` makes the
    precheck fail, ``fail_execute`` the work before the message, ``fail_post_condition`` after it.
    """

    TYPE, MAIN = "nop", "message"
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {},
        optional={
            "message": ranges.TEXT_OR_NULL,
            "skip_pre_condition": _FLAG,
            "fail_pre_condition": _FLAG,
            "fail_execute": _FLAG,
            "fail_post_condition": _FLAG,
            **schemas.ANY_RESOURCE,
        },
        examples=[{"message": "half way"}, {}],
    )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        message = text(parameters, "message") or resource(parameters, "")
        return f"nop: {one_line(message)}" if message else "nop"

    def precheck(self) -> None:
        if self.parameters.get("fail_pre_condition"):
            raise ActionFailed("this nop was asked to fail its precheck (fail_pre_condition)")
        if self.parameters.get("skip_pre_condition"):
            raise AlreadyDone("this nop was asked to be skipped (skip_pre_condition)")

    def execute(self, stop: StopSignal) -> Outcome:  # noqa: ARG002
        if self.parameters.get("fail_execute"):
            raise ActionFailed("this nop was asked to fail (fail_execute)")
        if message := self.parameters.get("message"):
            self.context.output(f"{message}\n")
        if self.parameters.get("fail_post_condition"):
            raise ActionFailed("this nop was asked to fail after its work (fail_post_condition)")
        return Outcome.CHANGED


class Sleep(Marker):
    """Wait ``duration`` seconds; fractions are allowed, and a stop ends the wait."""

    TYPE = "sleep"
    MAIN: ClassVar[str] = "duration"
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"duration": {**ranges.SECONDS, "description": "seconds"}},
        optional=schemas.ANY_RESOURCE,
        examples=[{"duration": 5}, {"duration": 0.25}],
    )

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:
        seconds = parameters.get(cls.MAIN)
        return float(seconds) if ranges.is_duration(seconds) else None

    @classmethod
    def waits_s(cls, parameters: Mapping[str, Any]) -> float | None:
        """Return the seconds: it does nothing but wait."""
        return cls.estimate(parameters)

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        seconds = cls.estimate(parameters)
        return "sleep" if seconds is None else f"sleep {seconds:g} s"

    def execute(self, stop: StopSignal) -> Outcome:
        seconds, began = self.parameters[self.MAIN], time.monotonic()
        if stop.wait(min(seconds, threading.TIMEOUT_MAX)):
            passed = time.monotonic() - began
            raise ActionFailed(f"stopped after {passed:.1f} s of {seconds:g} s")
        return Outcome.CHANGED


class Pause(Sleep):
    """Wait ``seconds`` between two steps; it does not count against ``max_workers``."""

    TYPE, MAIN, TAKES_WORKER = "pause", "seconds", False
    SCHEMA: ClassVar[Mapping[str, Any]] = schemas.parameters(
        {"seconds": ranges.SECONDS},
        optional=schemas.ANY_RESOURCE,
        examples=[{"seconds": 300}, {"seconds": 0.5}],
    )

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        seconds = cls.estimate(parameters)
        return "pause" if seconds is None else f"pause for {seconds:g} s"
