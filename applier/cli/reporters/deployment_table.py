# SPDX-License-Identifier: Apache-2.0
"""A deployment as a table: the state of each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.table import Table
from rich.text import Text

from applier.cli.reporters.plan_table import console, put, table_of
from applier.run import node_states
from applier.run.node_states import NodeResult, Status, Word
from applier.wording import count, one_line, some
from planner.model import ActionPlan

STYLES = {
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


def show(plan: ActionPlan, stream: TextIO) -> None:
    """Write the state of a deployment and of its nodes."""
    out = console(stream)
    found = node_states.report(plan)
    numbers = Counter(node.status for node in found.nodes)
    told = ", ".join(f"{numbers[status]} {status}" for status in Status if numbers[status])
    nodes = f"{count(len(found.nodes), 'node')}{f': {told}' if told else ''}"
    out.print(Text(f"Deployment {found.status}; {nodes}", STYLES[found.status]))
    if found.nodes:
        together = len(found.nodes) > MOST_NODES
        lines = _alike(found.nodes) if together else [[node] for node in found.nodes]
        put(out, _table(lines[:_MOST_LINES]))
        left = sum(map(len, lines[_MOST_LINES:]))
        if left:
            out.print(f"and {left} more nodes")


def _table(lines: Sequence[Sequence[NodeResult]]) -> Table:
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
            uids, Text(status, STYLES[status]), *(str(counts.get(word, 0)) for word in words)
        )
    return made


def _alike(nodes: Iterable[NodeResult]) -> list[list[NodeResult]]:
    """Group nodes of equal status and counts, the most urgent first."""
    found: dict[object, list[NodeResult]] = {}
    for node in nodes:
        found.setdefault((node.status, frozenset(node.counts.items())), []).append(node)
    order = list(Status)
    return sorted(found.values(), key=lambda alike: order.index(alike[0].status))
