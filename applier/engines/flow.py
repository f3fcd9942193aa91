"""A plan as a taskflow graph flow: one task for each name, one link for each order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from taskflow.patterns import graph_flow


class BulkFlow(graph_flow.Flow):
    """A graph flow that can be linked all at once.

    ``Flow.link`` copies and checks the whole graph for each link, which is quadratic: 100 ms a link
    for two layers of 500 tasks. Copying and checking once gives the same flow.
    """

    def link_all(self, links: Iterable[tuple[Any, Any]]) -> BulkFlow:
        """Let the second task of each pair wait for the first.

        Raises taskflow's DependencyFailure, and links nothing, when that makes a loop.
        """
        graph = self._graph.copy()
        # As Flow.link marks what was not found from the symbols that tasks provide.
        graph.add_edges_from(links, manual=True)
        self._swap(graph)
        return self


def build(
    after: Mapping[str, Sequence[str]], make_task: Callable[[str], Any], name: str = "plan"
) -> BulkFlow:
    """Make the flow of :func:`applier.scheduling.order.links`; ``make_task`` gives each its task.

    Linear in names and links.
    """
    tasks = {one: make_task(one) for one in after}
    flow = BulkFlow(name)
    flow.add(*tasks.values(), resolve_requires=False, resolve_existing=False)
    return flow.link_all((tasks[one], tasks[other]) for one in after for other in after[one])
