# SPDX-License-Identifier: Apache-2.0
"""Forecasts and rehearsals of a plan as tables, also for several settings; a bar of progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from applier.cli.reporters.formatting import wrapped
from applier.cli.reporters.plan_table import MOST_ROWS, cell, console, put, put_line, table_of
from applier.operations.rehearsals import Rehearsals
from applier.rehearsal.rehearsal_figures import NEEDS, Lowered, RehearsalFigures
from applier.run.plan_cloud import cloud_of
from applier.scheduling.forecast import Forecast
from applier.wording import count, duration, one_line
from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState


@contextmanager
def progress_bar(what: str, number: int) -> Iterator[Callable[[], None]]:
    """Show a bar of ``number`` steps; yield the function that advances it by one.

    If the function is called more often, the number grows. The bar is removed after the block.
    """
    console = Console(stderr=True)
    if not sys.stderr.isatty():
        yield lambda: None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(what, total=number)

        def advance() -> None:
            done = shown.tasks[0].completed + 1
            shown.update(task, completed=done, total=max(number, done))

        yield advance


#: The width of the bars in columns, and as a fraction of the terminal: the smaller one applies.
_BAR, _SHARE = 40, 0.4


def show_forecast(
    plan: ActionPlan, found: Forecast, stream: TextIO, *, whole: bool = False
) -> None:
    """Write when each action starts and ends; of a long plan only the critical path."""
    out = console(stream)
    actions = {a.uuid: a for a in plan.actions}
    order = [u for u in found.timeline.start_s if u in actions]
    short = len(order) > MOST_ROWS and not whole
    critical = set(found.critical)
    rows = [u for u in order if u in critical] if short else order
    _head(plan, out)
    table = table_of("start", "takes", "slack", "action", "", numbers=("start", "takes", "slack"))
    columns = table.columns[-1].width = min(_BAR, int(_SHARE * out.width))
    for uuid in rows[: None if whole else MOST_ROWS]:
        bar = Text(bar_of(found, uuid, columns), "bold red" if uuid in critical else "")
        took = found.timeline.end_s[uuid] - found.timeline.start_s[uuid]
        table.add_row(
            duration(found.timeline.start_s[uuid]),
            duration(took),
            "critical" if uuid in critical else duration(found.slack_s[uuid]),
            cell(actions[uuid].label),
            bar,
        )
    put(out, table)
    if short:
        first = f"first {MOST_ROWS} " if len(rows) > MOST_ROWS else ""
        out.print(f"{len(order)} actions: only the {first}critical ones; every action with --all")
    for line in footer(actions, found):
        for part in wrapped(line, 2, out.width):
            out.print(Text(part))


def _head(plan: ActionPlan, out: Console) -> None:
    name = f"  {one_line(plan.name)}" if plan.name else ""
    put_line(out, f"Plan {plan.uuid[:8]}{name}  planner {one_line(plan.planner)}", "bold")
    out.print(Text(f"Cloud: {cloud_of(plan)}"), soft_wrap=not out.is_terminal)


def bar_of(found: Forecast, uuid: str, columns: int) -> str:
    """Return the bar of one action: ``#`` on the critical path, ``=`` elsewhere.

    It is at least one column wide.
    """
    scale = columns / (found.timeline.makespan_s or 1)
    first = min(int(found.timeline.start_s[uuid] * scale), columns - 1)
    last = max(first + 1, round(found.timeline.end_s[uuid] * scale))
    return " " * first + ("#" if uuid in found.critical else "=") * (last - first)


def footer(actions: dict[str, Action], found: Forecast) -> list[str]:
    """Return lines about the makespan, its lower bound, and the critical path."""
    alone = sum(found.timeline.end_s[u] - found.timeline.start_s[u] for u in found.timeline.start_s)
    names = [one_line(actions[u].label) for u in found.critical]
    path = " -> ".join([*names[:3], "...", *names[-2:]] if len(names) > 6 else names)
    return [
        f"Expected {duration(found.timeline.makespan_s)}; one by one {duration(alone)}; "
        f"no order beats {duration(found.lower_bound_s)}.",
        f"Critical (#): {path or 'nothing is left to do'}",
    ]


def compare_forecasts(
    keys: Sequence[str], rows: Sequence[tuple[Sequence[str], Forecast]], knee: int, stream: TextIO
) -> None:
    """Write a row for each combination of settings, and mark the knee."""
    table = table_of(*keys, "expected", "no order beats", "", numbers=(*keys, "expected"))
    for i, (values, found) in enumerate(rows):
        table.add_row(
            *values,
            duration(found.timeline.makespan_s),
            duration(found.lower_bound_s),
            "<- knee" if i == knee else "",
        )
    put(console(stream), table)


_STYLES: Mapping[str, str] = {PlanState.SUCCEEDED: "green", PlanState.PAUSED: "yellow"}
#: The numbers of actions and resources that are shown unless all are asked for.
_MOST = 10
_RESOURCES = 5
#: The sentence about each guard that rehearsals do not simulate.
_NOT_REHEARSED = {
    "windows": "Windows are not rehearsed: no run waits for one; without --inject, it is said how "
    "many the plan takes.",
    "health_probe": "The health probe is not rehearsed: the site is always well.",
}
#: What is said of runs in which a failure kept others from running.
_NEEDED = "actions are not run because one that they need failed"
_FIGURES = ("ends well", "half end in", "9 in 10 in", "go wrong", "at worst", "no home")


def show_rehearsals(found: Rehearsals, stream: TextIO, *, whole: bool = False) -> None:
    """Write the final states, the times, the failed actions, and the effect of lower limits."""
    out = console(stream)
    plan, figures = found.plan, found.figures
    _head(plan, out)
    faults = ", ".join(map(str, found.settings.faults)) or "no faults"
    put_line(
        out,
        f"Rehearsed {count(figures.runs, 'time')} (seed {found.settings.seed}) with "
        f"{one_line(faults)}, max_workers {found.max_workers}",
    )
    table = table_of("ends", "times", "share", numbers=("times", "share"))
    for state, number in sorted(figures.states.items(), key=lambda pair: -pair[1]):
        style = _STYLES.get(state, "bold red")
        table.add_row(Text(state, style), str(number), _share(number, figures.runs))
    put(out, table)
    for line in _lines(found):
        put_line(out, line)
    _actions(found, out, whole=whole)
    _limits(found, out)


def _lines(found: Rehearsals) -> Iterator[str]:
    figures, calm = found.figures, found.without_faults
    yield (
        f"Time, of {count(figures.runs, 'run')}: {_time(figures.makespan_s.median)} for half of "
        f"them, {_time(figures.makespan_s.nine_in_ten)} for 9 in 10; "
        f"without faults {_time(calm.makespan_s)}."
    )
    yield (
        f"{figures.wrong_mean:.1f} actions go wrong on average, {figures.wrong.worst} at worst; "
        f"{figures.not_run_mean:.1f} are not run on average."
    )
    stopped = [
        f"{_NEEDED if guard == NEEDS else f'{guard} stops the run'} "
        f"{number} of {figures.runs} times"
        for guard, number in sorted(figures.stopped_by.items(), key=lambda pair: -pair[1])
    ]
    yield f"Guards: {'; '.join(stopped) or 'none had to act'}."
    yield from (_NOT_REHEARSED[guard] for guard in found.not_rehearsed)
    half = [f"{one_line(of.resource)} {of.runs}" for of in figures.half_done[:_RESOURCES]]
    more = len(figures.half_done) - len(half)
    if half:
        also = f", and {more} more" if more > 0 else ""
        yield f"Left half done, of {count(figures.runs, 'run')}: {', '.join(half)}{also}."
    else:
        yield "Nothing is left half done."
    if figures.homeless.worst or calm.homeless_most:
        yield (
            f"Instances without a home: {figures.homeless.worst} at once at worst, in "
            f"{count(figures.homeless_runs, 'run')}; {figures.homeless_left} at worst in the end; "
            f"without faults {calm.homeless_most} at once."
        )
    elif any(token.startswith("instance:") for a in found.plan.actions for token in a.tokens):
        yield "No instance is without a home at any time."
    if figures.endless:
        types = sorted({of.action.action_type for of in figures.actions if of.hangs})
        yield (
            f"Advice: set a time-out (timeout_s) of {', '.join(types)}: {figures.endless} of "
            f"{count(figures.runs, 'run')} do not end."
        )
    if found.samples:
        yield f"Durations are drawn from {count(found.samples, 'earlier run')} of actions."


def _actions(found: Rehearsals, out: Console, *, whole: bool) -> None:
    actions = found.figures.actions
    if not actions:
        return
    numbers = ("goes wrong", "hangs", "is not run")
    table = table_of("action", *numbers, numbers=numbers)
    for of in actions[: None if whole else _MOST]:
        table.add_row(cell(of.action.label), str(of.wrong), str(of.hangs), str(of.not_run))
    put(out, table)
    if len(actions) > _MOST and not whole:
        out.print(f"{len(actions)} actions: the first {_MOST}; all with --all")


def _limits(found: Rehearsals, out: Console) -> None:
    rows = [tried for tried in found.tried if tried.figures != found.compared]
    if not rows:
        return
    table = table_of("lower limit", *_FIGURES, numbers=_FIGURES)
    table.add_row("as planned", *_row(found.compared))
    for tried in rows:
        table.add_row(cell(f"{tried.limit}={tried.new}"), *_row(tried.figures))
    put(out, table)
    best = found.advised
    if best is not None:
        put_line(out, _advice(best, found.compared), "bold")


def _advice(best: Lowered, planned: RehearsalFigures) -> str:
    """Return the advice to lower a limit: fewer failures, and the longer time in return."""
    lower = best.figures
    gains = [
        f"{new} instead of {old} {what}"
        for new, old, what in (
            (f"{lower.wrong_mean:.1f}", f"{planned.wrong_mean:.1f}", "actions go wrong on average"),
            (lower.wrong.worst, planned.wrong.worst, "at worst"),
            (lower.homeless.worst, planned.homeless.worst, "instances are without a home at worst"),
        )
        if new != old
    ]
    return (
        f"Advice: lower {one_line(best.limit)} from {best.old} to {best.new}: {', '.join(gains)}. "
        f"Then 9 in 10 runs end within {_time(lower.makespan_s.nine_in_ten)} instead of "
        f"{_time(planned.makespan_s.nine_in_ten)}."
    )


def compare_rehearsals(
    keys: Sequence[str], rows: Sequence[tuple[Sequence[str], Rehearsals]], stream: TextIO
) -> None:
    """Write a row of figures for each combination of settings."""
    table = table_of(*keys, *_FIGURES, numbers=(*keys, *_FIGURES))
    for values, found in rows:
        table.add_row(*values, *_row(found.figures))
    out = console(stream)
    put(out, table)
    for guard in rows[0][1].not_rehearsed:
        put_line(out, _NOT_REHEARSED[guard])


def _row(figures: RehearsalFigures) -> tuple[str, ...]:
    return (
        f"{figures.well} of {figures.runs}",
        _time(figures.makespan_s.median),
        _time(figures.makespan_s.nine_in_ten),
        f"{figures.wrong_mean:.1f}",
        str(figures.wrong.worst),
        str(figures.homeless.worst),
    )


def _time(seconds: float) -> str:
    return "no end" if seconds == float("inf") else duration(seconds)


def _share(number: int, runs: int) -> str:
    return f"{100 * number / runs:.0f} %"
