# SPDX-License-Identifier: Apache-2.0
"""A plan as a taskflow graph flow: one task for each name, one link for each order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from taskflow.patterns import graph_flow


class BulkFlow(graph_flow.Flow):
    """A graph flow to which all links are added at once.

    ``Flow.link`` copies and checks the whole graph for each link, which is quadratic: 100 ms a link
    for two layers of 500 tasks. Copying and checking once makes the same flow.
    """

    def link_all(self, links: Iterable[tuple[Any, Any]]) -> BulkFlow:
        """Make the second task of each pair wait for the first.

        Raises taskflow's DependencyFailure, and adds no link, when that makes a loop.
        """
        graph = self._graph.copy()
        # Flow.link marks explicit links in the same way.
        graph.add_edges_from(links, manual=True)
        self._swap(graph)
        return self


def build(
    after: Mapping[str, Sequence[str]], make_task: Callable[[str], Any], name: str = "plan"
) -> BulkFlow:
    """Make the flow of :func:`applier.scheduling.order.links`; ``make_task`` makes each task.

    Linear in names and links.
    """
    tasks = {one: make_task(one) for one in after}
    flow = BulkFlow(name)
    flow.add(*tasks.values(), resolve_requires=False, resolve_existing=False)
    return flow.link_all((tasks[one], tasks[other]) for one in after for other in after[one])
