# SPDX-License-Identifier: Apache-2.0
"""The graph flow of a plan, as Watcher's applier makes one: any engine of taskflow can run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taskflow import flow
from taskflow.patterns import graph_flow
from taskflow.types import graph as graphs

if TYPE_CHECKING:
    import networkx as nx


class PlanFlow(graph_flow.Flow):
    """A graph flow with a task for each node of an order graph, and a link for each of its edges.

    The nodes are actions, and groups of links that many actions share. ``make_task`` makes the task
    of a node from its name. ``tasks`` maps names to tasks. The flow gets its graph at once, because
    ``add`` and ``link`` of graph flows copy and check the whole graph each time. A cycle raises
    taskflow's DependencyFailure.

    The flow only has the order of a plan. Its limits, groups of alternatives and triggers, and what
    runs after a failure, are decided by :mod:`applier.scheduling`, for the engine ``actionplan``.
    How many actions run at once is an option of the engine, ``max_workers``.
    """

    def __init__(self, name: str, order: nx.DiGraph[str], make_task: Callable[[str], Any]) -> None:
        super().__init__(name)
        tasks = self.tasks = {node: make_task(node) for node in order}
        graph = graphs.DiGraph(name=name)
        graph.add_nodes_from(tasks.values())
        links = ((tasks[one], tasks[other]) for one, other in order.edges)
        graph.add_edges_from(links, **{flow.LINK_MANUAL: True})
        self._swap(graph)

    def add(self, *items: Any, **_options: Any) -> PlanFlow:
        """Raise TypeError: a flow is made with all tasks of its plan."""
        raise TypeError(f"{self} has all tasks of its plan, so that {len(items)} cannot be added")
