# SPDX-License-Identifier: Apache-2.0
"""The progress of a running plan as one block that is redrawn on a terminal."""

from __future__ import annotations

import os
import sys
import termios
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from applier.cli.reporters.formatting import STYLES, ages_s
from applier.cli.reporters.plan_table import console
from applier.cli.reporters.progress_lines import Progress
from applier.contracts import Report
from applier.run.plan_cloud import shown_name
from applier.wording import because, duration, minutes, one_line, result, retry_line, starting
from planner.plan.model import Action
from planner.plan.states import OPEN, ActionState, Outcome, PlanState

#: The maximum numbers of rows for running and for failed actions.
_MOST_RUNNING, _MOST_BAD = 12, 5


class ProgressBlock(Progress):
    """Redraws one block: a bar, failed actions, running actions, the last message."""

    def _prepare(self) -> None:
        self._ages = ages_s(self._plan, self._at) if self._at else {}
        self._ended = Counter(result(a) for a in self._actions.values() if a.state not in OPEN)
        # Replaced, never changed in place: another thread draws the block.
        self._running: dict[str, float] = {}
        self._again: dict[str, Report] = {}
        self._bad: list[tuple[Action, Report]] = []
        self._state = self._told = ""
        self._cloud = shown_name(self._plan)
        self._started = ExitStack()
        self._live = Live(
            console=console(self._stream),
            get_renderable=self.render,
            refresh_per_second=4,
            transient=True,
        )

    def __enter__(self) -> Self:
        with ExitStack() as started:
            started.enter_context(unechoed())
            started.callback(self._live.stop)
            self._live.start()
            self._started = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._started.close()

    def on_reports(self, reports: Iterable[Report]) -> None:
        for action, report in self.heard(reports):
            self._again = {u: r for u, r in self._again.items() if u != report.uuid}
            if report.state is ActionState.ONGOING:
                since = self._clock() - self._ages.pop(report.uuid, 0.0)
                self._running = {**self._running, report.uuid: since}
                continue
            ran = report.uuid in self._running
            self._running = {u: t for u, t in self._running.items() if u != report.uuid}
            if report.old not in OPEN:
                self._ended = self._ended - Counter([_column(report.old)])
            if report.state is ActionState.PENDING:
                self._again = {**self._again, report.uuid: report}
                continue
            self._ended = self._ended + Counter([_column(report.state, report.outcome, ran=ran)])
            if report.state in (ActionState.FAILED, ActionState.UNKNOWN):
                self._bad = [*self._bad, (action, report)]

    def on_plan(self, state: PlanState, message: str | None) -> None:
        if state is PlanState.ONGOING and self._awaits_run:
            self._began, self._awaits_run = self._clock(), False
            taken_over = [a.uuid for a in self._taken_over]
            self._running = {u: self._began - self._ages.pop(u, 0.0) for u in taken_over}
        news = f"plan {state}{f': {one_line(message)}' if message else ''}"
        self._state = "" if state is PlanState.ONGOING else news

    def tell(self, text: str) -> None:
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


def _column(state: ActionState, outcome: Outcome | None = None, *, ran: bool = False) -> str:
    if ran and state is ActionState.CANCELLED:
        return "stopped"
    return result(Action(uuid="", action_type="", state=state, outcome=outcome))


#: The index of the local modes in the list that tcgetattr() returns.
_LOCAL = 3


@contextmanager
def unechoed() -> Iterator[None]:
    """Turn the terminal's echo off inside a block.

    Characters typed inside the block are discarded, so that the shell does not run a command that
    nobody saw. Ctrl-C and Ctrl-Z work. Without a terminal, or in the background, nothing changes.
    If a signal ends the program, the shell restores the terminal, as after any program.
    """
    restore = _without_echo()
    if restore is None:
        yield
        return
    try:
        yield
    finally:
        restore()


def _without_echo() -> Callable[[], None] | None:
    """Turn the echo off; return the function that restores it, None if nothing was changed."""
    try:
        terminal = sys.stdin.fileno()
        # The kernel stops a background process that changes the terminal (SIGTTOU).
        if os.tcgetpgrp(terminal) != os.getpgrp():
            return None
        before = termios.tcgetattr(terminal)
        changed = [*before]
        changed[_LOCAL] &= ~termios.ECHO
        termios.tcsetattr(terminal, termios.TCSANOW, changed)
    except (AttributeError, OSError, ValueError, termios.error):
        return None

    def restore() -> None:
        with suppress(OSError, termios.error):
            if os.tcgetpgrp(terminal) == os.getpgrp():
                termios.tcsetattr(terminal, termios.TCSAFLUSH, before)

    return restore
