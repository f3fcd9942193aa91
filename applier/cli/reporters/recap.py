"""What happened, when a plan has stopped: by host and type, and what was not done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TextIO

from rich.table import Table
from rich.text import Text

from applier.cli.reporters.plan_table import console, put, table_of
from applier.cli.reporters.words import RESULTS, duration, resources, result
from planner.model import JOIN, Action, ActionPlan
from planner.states import PlanState

_PLAN_STYLES = {PlanState.SUCCEEDED: "bold green", PlanState.FAILED: "bold red"}
_MOST_NOT_DONE = 20


def show(plan: ActionPlan, took_s: float, stream: TextIO) -> None:
    """Write the recap of a plan as the record has it."""
    out = console(stream)
    actions = [a for a in plan.actions if a.action_type != JOIN]
    style = _PLAN_STYLES.get(plan.state, "bold yellow")
    name = f"{plan.name} " if plan.name else ""
    out.print(Text(f"RECAP {name}{plan.uuid[:8]}  {plan.state}  took {duration(took_s)}", style))
    if plan.status_message:
        out.print(Text(plan.status_message))
    table = table_of("", *RESULTS, numbers=RESULTS)
    for host in sorted(resources(actions, "node")):
        _row(table, host, (a for a in actions if f"node:{host}" in a.tokens))
    if table.row_count:
        table.add_section()
    for name in sorted({a.action_type for a in actions}):
        _row(table, name, (a for a in actions if a.action_type == name))
    table.add_section()
    _row(table, f"all {len(actions)}", actions)
    put(out, table)
    for line in not_done(actions):
        out.print(Text(line))


def _row(table: Table, title: str, actions: Iterable[Action]) -> None:
    counts = Counter(map(result, actions))
    style = "red" if counts["failed"] or counts["not run"] else ""
    table.add_row(Text(title), *(str(counts[column]) for column in RESULTS), style=style)


def not_done(actions: list[Action]) -> list[str]:
    """Say for each action that failed or was not run why, failures first."""
    ranked = sorted(
        (a for a in actions if result(a) in ("failed", "not run")),
        key=lambda a: result(a) != "failed",
    )
    lines = [
        f"  {a.state:<20} {a.label}: {a.status_message or 'no message'}"
        for a in ranked[:_MOST_NOT_DONE]
    ]
    if len(ranked) > _MOST_NOT_DONE:
        lines.append(f"  and {len(ranked) - _MOST_NOT_DONE} more (actionplan action list)")
    return ["Not done:", *lines] if lines else []
