# SPDX-License-Identifier: Apache-2.0
"""Do nothing, or fail on request: for examples, drills and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from applier.actions import schemas
from applier.actions.parameters import one_line, resource, text
from applier.contracts import ActionPlugin, StopSignal, Verified
from applier.errors import ActionFailed, AlreadyDone
from planner import ranges
from planner.states import Outcome

_FLAG = {"type": "boolean"}


class Nop(ActionPlugin):
    """Print a message, if there is one, and change nothing, in no time; counts as changed.

    ``skip_pre_condition`` makes the precheck find it done, ``fail_pre_condition`` makes the
    precheck fail, ``fail_execute`` the work before the message, ``fail_post_condition`` after it.
    """

    TYPE = "nop"
    MAIN = "message"
    USES_MACHINES = False
    RERUN_SAFE = True
    JOINS_WORK = True
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
    def works_outside(cls, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Return False: it touches nothing."""
        return False

    @classmethod
    def estimate(cls, parameters: Mapping[str, Any]) -> float | None:  # noqa: ARG003
        """Return 0: it takes no time."""
        return 0.0

    @classmethod
    def describe(cls, parameters: Mapping[str, Any]) -> str:
        """Return a line such as ``nop: MESSAGE``."""
        message = text(parameters, "message") or resource(parameters, "")
        return f"nop: {one_line(message)}" if message else "nop"

    def precheck(self) -> None:
        """Raise ActionFailed or AlreadyDone if the parameters request it."""
        if self.parameters.get("fail_pre_condition"):
            raise ActionFailed("this nop was asked to fail its precheck (fail_pre_condition)")
        if self.parameters.get("skip_pre_condition"):
            raise AlreadyDone("this nop was asked to be skipped (skip_pre_condition)")

    def execute(self, stop: StopSignal) -> Outcome:  # noqa: ARG002
        """Print the message."""
        if self.parameters.get("fail_execute"):
            raise ActionFailed("this nop was asked to fail (fail_execute)")
        if message := self.parameters.get("message"):
            self.context.output(f"{message}\n")
        if self.parameters.get("fail_post_condition"):
            raise ActionFailed("this nop was asked to fail after its work (fail_post_condition)")
        return Outcome.CHANGED

    def verify(self) -> Verified:
        """Return NOT_DONE: running it again does no harm."""
        return Verified.NOT_DONE
