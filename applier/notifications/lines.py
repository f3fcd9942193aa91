# SPDX-License-Identifier: Apache-2.0
"""Writes the events of a run as JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TextIO

from applier.contracts import Report
from applier.notifications import schema
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import PlanState


class EventLines:
    """A listener of a run that writes a line for each event, once its change is committed.

    Joins do nothing, and have no events. If the stream fails, ``tell`` is called once with the
    reason, nothing more is written, and the run continues.
    """

    def __init__(
        self,
        plan: ActionPlan,
        stream: TextIO,
        *,
        clock: Callable[[], datetime],
        tell: Callable[[str], None],
    ) -> None:
        self._plan = plan.uuid
        self._actions = {a.uuid: a for a in plan.actions if a.action_type != JOIN}
        self._stream, self._clock, self._tell = stream, clock, tell
        self._number, self._works = 0, True

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Write a line for each report."""
        at = self._clock()
        known = ((self._actions[r.uuid], r) for r in reports if r.uuid in self._actions)
        self._write(
            schema.of_report(self._plan, action, report, number=self._next(), at=at)
            for action, report in known
        )

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Write a line for the new state of the plan."""
        at = self._clock()
        self._write([schema.of_plan(self._plan, state, message, number=self._next(), at=at)])

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _write(self, events: Iterable[schema.Event]) -> None:
        if not self._works:
            return
        try:
            self._stream.writelines(f"{line(event)}\n" for event in events)
            self._stream.flush()
        except (OSError, ValueError) as reason:
            self._works = False
            why = reason.strerror if isinstance(reason, OSError) else reason
            self._tell(f"No more events are written: {why}")


def line(event: schema.Event) -> str:
    r"""Return an event as a line of ASCII without control characters.

    >>> line({"message": "caf\u00e9\x7f"})
    '{"message":"caf\\u00e9\\u007f"}'
    """
    return json.dumps(event, separators=(",", ":")).replace("\x7f", "\\u007f")
