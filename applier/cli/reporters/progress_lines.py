# SPDX-License-Identifier: Apache-2.0
"""The progress of a running plan as plain lines: for pipes, files and simple terminals."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Self, TextIO

from applier.cli.reporters.formatting import age_s
from applier.contracts import Listener, Report
from applier.wording import because, minutes, one_line, retry_line, starting
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import OPEN, ActionState, PlanState
from planner.safe_text import visible


class Progress(Listener):
    """A display of a running plan; as a context manager, visible inside the block.

    The elapsed time counts from the beginning of the run. ``at`` is the time now; ``first`` is when
    the run began if that was before this display.
    """

    def __init__(
        self,
        plan: ActionPlan,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        *,
        at: datetime | None = None,
        first: datetime | None = None,
    ) -> None:
        self._plan, self._stream, self._at = plan, stream, at
        self._awaits_run = first is None
        self._actions = {a.uuid: a for a in plan.actions if a.action_type != JOIN}
        self._taken_over = [a for a in self._actions.values() if a.state is ActionState.ONGOING]
        self._outcomes = {a.uuid: a.outcome for a in plan.actions if a.outcome}
        self._clock, self._began = clock, clock() - (age_s(first, at) if first and at else 0.0)
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Make what the display needs of the plan."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @abstractmethod
    def tell(self, text: str) -> None:
        """Show a message about a signal or about the record. May be called in a signal handler."""

    def heard(self, reports: Iterable[Report]) -> list[tuple[Action, Report]]:
        """Return the reports with their actions, without joins, after noting all outcomes.

        A commit may have an outcome and the starts that it triggers.
        """
        reports = list(reports)
        self._outcomes |= {
            r.uuid: r.outcome for r in reports if r.outcome and r.state is not ActionState.PENDING
        }
        return [(self._actions[r.uuid], r) for r in reports if r.uuid in self._actions]


class ProgressLines(Progress):
    """Writes a line for each start, each end and each failed attempt, with the elapsed time."""

    def _prepare(self) -> None:
        self._total = len(self._actions)
        self._ended = sum(a.state not in OPEN for a in self._actions.values())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.flush()

    def on_reports(self, reports: Iterable[Report]) -> None:
        for action, report in self.heard(reports):
            at = minutes(self._clock() - self._began)
            if report.state is ActionState.ONGOING:
                told = because(action, self._actions, self._outcomes) if action.triggers else ""
                self._write(f"{at}  start      {starting(action, told)}")
                continue
            self._ended += (report.state not in OPEN) - (report.old not in OPEN)
            if report.state is ActionState.PENDING:
                self._write(f"{at}  {retry_line(report, action)}")
                continue
            outcome = f" ({report.outcome})" if report.outcome else ""
            why = f": {one_line(report.message)}" if report.message else ""
            done = f"[{self._ended}/{self._total}]"
            self._write(f"{at}  {report.state}{outcome} {done} {one_line(action.label)}{why}")
        self._stream.flush()

    def on_plan(self, state: PlanState, message: str | None) -> None:
        now, begins = self._clock(), state is PlanState.ONGOING and self._awaits_run
        taken_over = self._taken_over if begins else ()
        if begins:
            self._began, self._awaits_run = now, False
        at = minutes(now - self._began)
        self._write(f"{at}  plan {state}{f': {one_line(message)}' if message else ''}")
        for action in taken_over:
            self._write(f"{at}  taken over {starting(action, '')}")
        self._stream.flush()

    def tell(self, text: str) -> None:
        # Not through the stream: its buffer may be in use when the signal arrives.
        try:
            os.write(2, f"{visible(text)}\n".encode())
        except OSError:
            return

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")
