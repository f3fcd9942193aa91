# SPDX-License-Identifier: Apache-2.0
"""Shows a forecast as a table with bars, and compares several forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from rich.text import Text

from applier.cli.reporters.column_widths import wrapped
from applier.cli.reporters.plan_table import MOST_ROWS, cell, console, put, put_line, table_of
from applier.run.plan_cloud import cloud_of
from applier.scheduling.forecast import Forecast
from applier.wording import duration, one_line
from planner.model import Action, ActionPlan

#: The width of the bars in columns, and as a fraction of the terminal: the smaller one applies.
_BAR, _SHARE = 40, 0.4


def show(plan: ActionPlan, found: Forecast, stream: TextIO, *, whole: bool = False) -> None:
    """Write when each action starts and ends; of a long plan only the critical path."""
    out = console(stream)
    actions = {a.uuid: a for a in plan.actions}
    order = [u for u in found.timeline.start_s if u in actions]
    short = len(order) > MOST_ROWS and not whole
    critical = set(found.critical)
    rows = [u for u in order if u in critical] if short else order
    name = f"  {one_line(plan.name)}" if plan.name else ""
    put_line(out, f"Plan {plan.uuid[:8]}{name}  planner {one_line(plan.planner)}", "bold")
    out.print(Text(f"Cloud: {cloud_of(plan)}"), soft_wrap=not out.is_terminal)
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


def compare(
    keys: Sequence[str], rows: Sequence[tuple[list[str], Forecast]], knee: int, stream: TextIO
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
