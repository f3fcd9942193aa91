"""How far a plan has come while it runs: one live block on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TextIO

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from applier.cli.reporters.plan_table import console
from applier.cli.reporters.words import STYLES, duration, result
from applier.contracts import Report
from planner.model import JOIN, Action, ActionPlan
from planner.states import OPEN, ActionState, PlanState

_MOST_RUNNING = 12


class Lines:
    """Writes a line for each start and each end, with the time since the beginning."""

    def __init__(
        self, plan: ActionPlan, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._actions = {a.uuid: a for a in plan.actions if a.action_type != JOIN}
        self._total = len(self._actions)
        self._ended = sum(a.state not in OPEN for a in self._actions.values())
        self._stream, self._clock, self._began = stream, clock, clock()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.flush()

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Write what was committed."""
        for report in reports:
            action = self._actions.get(report.uuid)
            if action is None:
                continue
            at = _minutes(self._clock() - self._began)
            if report.state is ActionState.ONGOING:
                self._write(f"{at}  start      {_what(action)}")
                continue
            self._ended += 1
            outcome = f" ({report.outcome})" if report.outcome else ""
            why = f": {report.message}" if report.message else ""
            done = f"[{self._ended}/{self._total}]"
            self._write(f"{at}  {report.state}{outcome} {done} {action.label}{why}")
        self._stream.flush()

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Write that the plan changed its state."""
        at = _minutes(self._clock() - self._began)
        self._write(f"{at}  plan {state}{f': {message}' if message else ''}")

    def _write(self, line: str) -> None:
        self._stream.write(f"{line}\n")


class Block:
    """Keeps one block up to date: a bar, what runs, what failed."""

    def __init__(
        self, plan: ActionPlan, stream: TextIO, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._actions = {a.uuid: a for a in plan.actions if a.action_type != JOIN}
        self._ended = Counter(result(a) for a in self._actions.values() if a.state not in OPEN)
        self._running: dict[str, float] = {}
        self._bad: list[tuple[Action, Report]] = []
        self._state: str = ""
        self._clock, self._began = clock, clock()
        self._live = Live(
            console=console(stream),
            get_renderable=self.render,
            refresh_per_second=4,
            transient=True,
        )

    def __enter__(self) -> Block:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Take in what was committed; the block is drawn by its own clock."""
        for report in reports:
            action = self._actions.get(report.uuid)
            if action is None:
                continue
            if report.state is ActionState.ONGOING:
                self._running = {**self._running, report.uuid: self._clock()}
                continue
            self._running = {u: t for u, t in self._running.items() if u != report.uuid}
            self._ended[_column(report)] += 1
            if report.state in (ActionState.FAILED, ActionState.UNKNOWN):
                self._bad = [*self._bad, (action, report)]

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Take in that the plan changed its state."""
        self._state = f"{state} {message or ''}".strip()

    def render(self) -> RenderableType:
        """Draw the block as things stand."""
        total, ended, running = len(self._actions), sum(self._ended.values()), self._running
        elapsed = _minutes(self._clock() - self._began)
        counts = "  ".join(f"{word} {n}" for word, n in self._ended.items() if n)
        head = Table.grid(padding=(0, 1))
        head.add_row(
            ProgressBar(total=max(total, 1), completed=ended, width=24),
            Text(f"{ended}/{total} ended  running {len(running)}  {counts}  elapsed {elapsed}"),
        )
        rows = Table.grid(padding=(0, 1))
        for action, report in self._bad[-5:]:
            rows.add_row(
                Text(f"  {report.state}", STYLES[report.state]),
                Text(f"{action.label}: {report.message or ''}"),
            )
        for uuid, since in list(running.items())[:_MOST_RUNNING]:
            action = self._actions[uuid]
            of = f" of ~{duration(action.estimate_s)}" if action.estimate_s else ""
            rows.add_row(
                Text("  running", "bold"),
                Text(f"{_what(action)}  {duration(int(self._clock() - since))}{of}"),
            )
        state = [Text(f"  {self._state}", "yellow")] if self._state else []
        return Group(head, rows, *state)


def _column(report: Report) -> str:
    made = Action(uuid="", action_type="", state=report.state, outcome=report.outcome)
    return result(made)


def _what(action: Action) -> str:
    return f"{action.label}  {action.description or action.action_type}"


def _minutes(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60:>3}:{whole % 60:02d}"
