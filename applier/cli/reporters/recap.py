# SPDX-License-Identifier: Apache-2.0
"""The recap of a plan that has stopped: results by host and type, and the failed actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.table import Table
from rich.text import Text

from applier.cli.reporters import deployment_table
from applier.cli.reporters.formatting import RESULTS
from applier.cli.reporters.plan_table import console, put, put_line, table_of
from applier.run import node_states
from applier.run.plan_cloud import cloud_of
from applier.wording import duration, one_line, resources, result, some
from planner.model import JOIN, Action, ActionPlan
from planner.states import OPEN, ActionState, PlanState

_PLAN_STYLES = {PlanState.SUCCEEDED: "bold green", PlanState.FAILED: "bold red"}
#: The column that is left out if it is empty.
_IN_DOUBT = "in doubt"
_BAD = ("failed", _IN_DOUBT)
_MOST_NOT_DONE = 20
#: If there are more hosts than this, only those with failures are shown.
_MOST_HOSTS = 20


def show(plan: ActionPlan, took_s: float, stream: TextIO) -> None:
    """Write the recap of a stored plan."""
    out = console(stream)
    actions = [a for a in plan.actions if a.action_type != JOIN]
    style = _PLAN_STYLES.get(plan.state, "bold yellow")
    name = f"{one_line(plan.name)} " if plan.name else ""
    title = f"RECAP {name}{plan.uuid[:8]}  {plan.state}  took {duration(took_s)}"
    put_line(out, title, style)
    out.print(Text(f"Cloud: {cloud_of(plan)}"), soft_wrap=not out.is_terminal)
    if plan.status_message:
        out.print(Text(one_line(plan.status_message)))
    if plan.planner == node_states.PLANNER and deployment_table.is_shown(plan):
        deployment_table.show(plan, stream)
    elif actions:
        put(out, _table(actions))
    for line in not_done(actions):
        out.print(Text(line), soft_wrap=not out.is_terminal)


def _table(actions: list[Action]) -> Table:
    told = [r for r in RESULTS if r != _IN_DOUBT or any(result(a) == r for a in actions)]
    table = table_of("", *told, numbers=told)
    by_host: dict[str, list[Action]] = {}
    for action in actions:
        for host in resources([action], "node"):
            by_host.setdefault(host, []).append(action)
    hosts = sorted(by_host)
    if len(hosts) > _MOST_HOSTS:
        hosts = [h for h in hosts if _not_well(by_host[h])][:_MOST_HOSTS]
    for host in hosts:
        _row(table, host, by_host[host], told)
    if len(hosts) < len(by_host):
        table.add_row(f"{len(by_host) - len(hosts)} more hosts", *[""] * len(told))
    if by_host:
        table.add_section()
    for name in sorted({a.action_type for a in actions}):
        _row(table, name, [a for a in actions if a.action_type == name], told)
    table.add_section()
    _row(table, f"all {len(actions)}", actions, told)
    return table


def _not_well(actions: Iterable[Action]) -> bool:
    return any(result(a) in (*_BAD, "not run") for a in actions)


def _row(table: Table, title: str, actions: list[Action], told: Sequence[str]) -> None:
    counts = Counter(map(result, actions))
    bad = any(counts[column] for column in _BAD)
    style = "red" if bad else "yellow" if counts["not run"] else ""
    table.add_row(Text(one_line(title)), *(str(counts[column]) for column in told), style=style)


def not_done(actions: list[Action]) -> list[str]:
    """Return lines about the actions that failed, did not run, or are PENDING, failures first."""
    ended = [a for a in actions if a.state not in OPEN and _not_well([a])]
    ended.sort(key=lambda a: result(a) not in _BAD)
    lines = [
        f"  {a.state:<20} {one_line(a.label)}: {one_line(a.status_message or 'no reason is known')}"
        for a in ended[:_MOST_NOT_DONE]
    ]
    if len(ended) > _MOST_NOT_DONE:
        lines.append(f"  and {len(ended) - _MOST_NOT_DONE} more (actionplan action list)")
    lines = ["Not done:", *lines] if lines else []
    left = [one_line(a.label) for a in actions if a.state is ActionState.PENDING]
    return [*lines, *([f"Left to do: {some(left, 8, ', ')}"] if left else [])]
