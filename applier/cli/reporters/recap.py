# SPDX-License-Identifier: Apache-2.0
"""The recap of a plan that has stopped: results by host and type, failures, states of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.table import Table
from rich.text import Text

from applier.cli.reporters.formatting import RESULTS
from applier.cli.reporters.plan_table import console, put, put_line, table_of
from applier.run import node_states
from applier.run.node_states import NodeResult, Status, Word
from applier.run.plan_cloud import cloud_of
from applier.wording import (
    count,
    duration,
    named,
    natural,
    one_line,
    resources,
    result,
    some,
    told_once,
)
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import OPEN, ActionState, PlanState

NODE_STYLES = {
    Status.ERROR: "bold red",
    Status.STOPPED: "yellow",
    Status.IN_PROGRESS: "bold",
    Status.WAITING: "",
    Status.READY: "green",
}
#: If there are more nodes than this, equal ones share a line.
MOST_NODES = 20
#: The maximum number of lines.
_MOST_LINES = 40
#: The maximum number of nodes that a line names.
_NAMED = 4


def is_shown(plan: ActionPlan) -> bool:
    """Return True for a deployment that has begun."""
    return plan.planner == node_states.PLANNER and node_states.has_begun(plan)


def show_nodes(plan: ActionPlan, stream: TextIO) -> None:
    """Write the state of a deployment and of its nodes."""
    out = console(stream)
    found = node_states.report(plan)
    numbers = Counter(node.status for node in found.nodes)
    told = ", ".join(f"{numbers[status]} {status}" for status in Status if numbers[status])
    nodes = f"{count(len(found.nodes), 'node')}{f': {told}' if told else ''}"
    out.print(Text(f"Deployment {found.status}; {nodes}", NODE_STYLES[found.status]))
    if found.nodes:
        together = len(found.nodes) > MOST_NODES
        lines = _alike(found.nodes) if together else [[node] for node in found.nodes]
        put(out, _nodes(lines[:_MOST_LINES]))
        left = sum(map(len, lines[_MOST_LINES:]))
        if left:
            out.print(f"and {left} more nodes")


def _nodes(lines: Sequence[Sequence[NodeResult]]) -> Table:
    """Return the table of nodes, with one row for each group of equal ones."""
    words = [w for w in Word if any(nodes[0].counts.get(w) for nodes in lines)]
    made = table_of("nodes", "status", *words, numbers=words)
    # The columns of numbers are as wide as the longest word of their heads.
    for column, word in zip(made.columns[2:], words, strict=True):
        column.max_width = max(map(len, word.split()))
    for nodes in lines:
        uids = Text(one_line(some([node.uid for node in nodes], _NAMED)))
        status, counts = nodes[0].status, nodes[0].counts
        made.add_row(
            uids, Text(status, NODE_STYLES[status]), *(str(counts.get(word, 0)) for word in words)
        )
    return made


def _alike(nodes: Iterable[NodeResult]) -> list[list[NodeResult]]:
    """Group nodes of equal status and counts, the most urgent first."""
    found: dict[object, list[NodeResult]] = {}
    for node in nodes:
        found.setdefault((node.status, frozenset(node.counts.items())), []).append(node)
    order = list(Status)
    return sorted(found.values(), key=lambda alike: order.index(alike[0].status))


_PLAN_STYLES = {PlanState.SUCCEEDED: "bold green", PlanState.FAILED: "bold red"}
#: The columns that are left out if they are empty.
_RARE = ("in doubt", "stopped")
_BAD = ("failed", "in doubt")
_NOT_DONE = (*_BAD, "stopped", "not run")
_MOST_NOT_DONE = 20
_NO_REASON = "no reason is known"
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
    if plan.planner == node_states.PLANNER and is_shown(plan):
        show_nodes(plan, stream)
    elif actions:
        put(out, _table(actions))
        rows = [action.uuid for row in _by_host(actions).values() for action in row]
        if len(rows) > len(set(rows)):
            out.print(Text("An action on two hosts is in the rows of both.", "dim"))
    for line in not_done(actions):
        out.print(Text(line), soft_wrap=not out.is_terminal)


def _table(actions: list[Action]) -> Table:
    occur = set(map(result, actions))
    told = [r for r in RESULTS if r not in _RARE or r in occur]
    table = table_of("", *told, numbers=told)
    by_host = _by_host(actions)
    hosts = sorted(by_host, key=natural)
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


def _by_host(actions: Iterable[Action]) -> dict[str, list[Action]]:
    found: dict[str, list[Action]] = {}
    for action in actions:
        for host in resources([action], "node"):
            # A move that was not needed has brought nothing to its destination.
            is_done = action.state is not ActionState.SKIPPED
            if is_done or host != action.input_parameters.get("destination_node"):
                found.setdefault(host, []).append(action)
    return found


def _not_well(actions: Iterable[Action]) -> bool:
    return any(result(a) in _NOT_DONE for a in actions)


def _row(table: Table, title: str, actions: list[Action], told: Sequence[str]) -> None:
    counts = Counter(map(result, actions))
    bad = any(counts[column] for column in _BAD)
    style = "red" if bad else "yellow" if counts["stopped"] + counts["not run"] else ""
    table.add_row(Text(one_line(title)), *[str(counts[column]) for column in told], style=style)


def not_done(actions: list[Action]) -> list[str]:
    """Return lines about the actions that failed, did not run, or are PENDING, failures first.

    What is true of several actions is told once.
    """
    ended = [a for a in actions if a.state not in OPEN and _not_well([a])]
    ended.sort(key=lambda a: result(a) not in _BAD)
    alike = told_once(ended)
    lines = [
        f"  {same[0].state:<20} {named(same)}: {one_line(same[0].status_message or _NO_REASON)}"
        for same in alike[:_MOST_NOT_DONE]
    ]
    if len(alike) > _MOST_NOT_DONE:
        more = sum(map(len, alike[_MOST_NOT_DONE:]))
        lines.append(f"  and {more} more (actionplan action list)")
    lines = ["Not done:", *lines] if lines else []
    left = [one_line(a.label) for a in actions if a.state is ActionState.PENDING]
    return [*lines, *([f"Left to do: {some(left, 8, ', ')}"] if left else [])]
