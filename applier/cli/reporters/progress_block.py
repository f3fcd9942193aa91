# SPDX-License-Identifier: Apache-2.0
"""The progress of a running plan as one block that is redrawn on a terminal."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import datetime
from typing import TextIO

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from applier.cli.reporters.formatting import STYLES, age_s, ages_s
from applier.cli.reporters.plan_table import console
from applier.cli.unechoed import unechoed
from applier.contracts import Report
from applier.operations.triggers import because
from applier.run.plan_cloud import shown_name
from applier.wording import duration, minutes, one_line, result, retry_line, starting
from planner.model import JOIN, Action, ActionPlan
from planner.states import OPEN, ActionState, Outcome, PlanState

#: The maximum numbers of rows for running and for failed actions.
_MOST_RUNNING, _MOST_BAD = 12, 5


class ProgressBlock:
    """Redraws one block: a bar, failed actions, running actions, the last message.

    The elapsed time counts from the first start of the run, or from its begin if it takes over
    actions that an earlier run has started. ``at`` is the time now. If the run began before this
    display, ``first`` is the time of the first start.
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
        self._ages = ages_s(plan, at) if at else {}
        self._awaits_start = first is None
        self._taken_over = [a.uuid for a in plan.actions if a.state is ActionState.ONGOING]
        self._actions = {a.uuid: a for a in plan.actions if a.action_type != JOIN}
        self._ended = Counter(result(a) for a in self._actions.values() if a.state not in OPEN)
        # Replaced, never changed in place: another thread draws the block.
        self._running: dict[str, float] = {}
        self._again: dict[str, Report] = {}
        self._bad: list[tuple[Action, Report]] = []
        self._state = self._told = ""
        self._outcomes = {a.uuid: a.outcome for a in plan.actions if a.outcome}
        self._cloud = shown_name(plan)
        self._clock, self._began = clock, clock() - (age_s(first, at) if first and at else 0.0)
        self._started = ExitStack()
        self._live = Live(
            console=console(stream),
            get_renderable=self.render,
            refresh_per_second=4,
            transient=True,
        )

    def __enter__(self) -> ProgressBlock:
        with ExitStack() as started:
            started.enter_context(unechoed())
            started.callback(self._live.stop)
            self._live.start()
            self._started = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._started.close()

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Store committed starts and ends; the block is redrawn by a timer."""
        reports = list(reports)
        # First all outcomes of the commit, because it may also have the starts that they trigger.
        self._outcomes |= {
            r.uuid: r.outcome for r in reports if r.outcome and r.state is not ActionState.PENDING
        }
        for report in reports:
            action = self._actions.get(report.uuid)
            if action is None:
                continue
            self._again = {u: r for u, r in self._again.items() if u != report.uuid}
            if report.state is ActionState.ONGOING:
                if self._awaits_start:
                    self._began, self._awaits_start = self._clock(), False
                since = self._clock() - self._ages.pop(report.uuid, 0.0)
                self._running = {**self._running, report.uuid: since}
                continue
            self._running = {u: t for u, t in self._running.items() if u != report.uuid}
            if report.old not in OPEN:
                self._ended = self._ended - Counter([_column(report.old)])
            if report.state is ActionState.PENDING:
                self._again = {**self._again, report.uuid: report}
                continue
            self._ended = self._ended + Counter([_column(report.state, report.outcome)])
            if report.state in (ActionState.FAILED, ActionState.UNKNOWN):
                self._bad = [*self._bad, (action, report)]

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Store the new state of the plan; actions that it takes over are running from then on."""
        if state is PlanState.ONGOING and self._awaits_start and self._taken_over:
            self._began, self._awaits_start = self._clock(), False
            self._running = {u: self._began - self._ages.pop(u, 0.0) for u in self._taken_over}
        news = f"plan {state}{f': {one_line(message)}' if message else ''}"
        self._state = "" if state is PlanState.ONGOING else news

    def tell(self, text: str) -> None:
        """Show a message about a signal or about the record below the block."""
        self._told = text

    def render(self) -> RenderableType:
        """Return the block for the current state."""
        running, ended = self._running, self._ended
        rows = Table.grid(padding=(0, 1), pad_edge=False)
        rows.add_column(no_wrap=True, min_width=len("  running"))
        rows.add_column(overflow="ellipsis", no_wrap=True)
        for action, report in self._bad[-_MOST_BAD:]:
            why = one_line(report.message or "")
            rows.add_row(
                Text(f"  {report.state}", STYLES[report.state]),
                Text(f"{one_line(action.label)}: {why}"),
            )
        for uuid, report in list(self._again.items())[-_MOST_BAD:]:
            rows.add_row(Text("  waiting", "yellow"), Text(retry_line(report, self._actions[uuid])))
        for uuid, since in list(running.items())[:_MOST_RUNNING]:
            rows.add_row(Text("  running", "bold"), Text(self._progress(uuid, since)))
        if len(running) > _MOST_RUNNING:
            rows.add_row("", Text(f"and {len(running) - _MOST_RUNNING} more"))
        told = [Text(f"  {t}", "yellow") for t in (self._told or self._state,) if t]
        return Group(self._head(sum(ended.values()), len(running), ended), rows, *told)

    def _head(self, ended: int, running: int, columns: Counter[str]) -> RenderableType:
        total = len(self._actions)
        words = [f"{ended}/{total} ended", f"running {running}"]
        words += [f"{word} {number}" for word, number in columns.items() if number]
        words.append(f"elapsed {minutes(self._clock() - self._began).strip()}")
        words.append(self._cloud)
        head = Table.grid(padding=(0, 1), pad_edge=False)
        head.add_column(width=20)
        head.add_column(overflow="fold")
        head.add_row(
            ProgressBar(total=max(total, 1), completed=ended, width=20), Text("  ".join(words))
        )
        return head

    def _progress(self, uuid: str, since: float) -> str:
        action = self._actions[uuid]
        of = f" of ~{duration(action.estimate_s)}" if action.estimate_s else ""
        told = because(action, self._actions, self._outcomes)
        return f"{duration(int(self._clock() - since))}{of}  {starting(action, told)}"


def _column(state: ActionState, outcome: Outcome | None = None) -> str:
    return result(Action(uuid="", action_type="", state=state, outcome=outcome))
