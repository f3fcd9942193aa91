# SPDX-License-Identifier: Apache-2.0
"""The graph of a drawing: its lines can be followed in both directions, and removed.

Links of a plan become lines, large sets of predecessors that actions share become points.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from planner.plan.graph import NumberedGroups
from planner.plan.model import Action, ActionPlan

if TYPE_CHECKING:
    import networkx as nx

#: A node is not replaced by more lines than this, unless it has as many lines itself. A shared set
#: of predecessors that would make more lines than this gets a point.
DENSE = 16
#: Graphs with more nodes than this are not reduced transitively.
MANY_NODES = 10_000


class Line(NamedTuple):
    """A line between two boxes or points; ``kind`` is one of KINDS in planner.render.drawing."""

    tail: str
    head: str
    kind: str
    label: str = ""


class DrawnGraph:
    """Nodes, each with its incoming and outgoing lines.

    Between two nodes there is at most one line for a need or an order, one of kind ``any``, and one
    for each event.
    """

    def __init__(self, nodes: Iterable[str]) -> None:
        self.nodes: dict[str, None] = dict.fromkeys(nodes)
        self._into: dict[str, dict[tuple[str, str], str]] = {n: {} for n in self.nodes}
        self._from: dict[str, dict[tuple[str, str], None]] = {n: {} for n in self.nodes}

    def node(self, name: str) -> None:
        """Add a node."""
        self.nodes[name] = None
        self._into[name], self._from[name] = {}, {}

    def line(self, tail: str, head: str, kind: str, label: str = "") -> None:
        """Add a line, unless it is a loop, or an order between two nodes that have a need.

        A need replaces an order between the same nodes.
        """
        key = (tail, kind if kind == "any" else label)
        if tail != head and not (kind == "order" and key in self._into[head]):
            self._into[head][key] = kind
            self._from[tail][head, key[1]] = None

    def into(self, node: str) -> Iterator[Line]:
        """Yield the lines that lead to a node; a need replaces an ``any`` from the same node."""
        kinds = {(tail, kind) for (tail, _), kind in self._into[node].items()}
        stronger = {"any": "need"}
        for (tail, label), kind in self._into[node].items():
            if (tail, stronger.get(kind)) not in kinds:
                yield Line(tail, node, kind, "" if kind == "any" else label)

    def after(self, node: str) -> list[str]:
        """List the successors of a node, each once."""
        return list(dict.fromkeys(head for head, _ in self._from[node]))

    def lines(self) -> list[Line]:
        """List all lines, ordered by the node that they lead to."""
        return [line for node in self.nodes for line in self.into(node)]

    def remove(self, node: str) -> None:
        """Remove a node and its lines."""
        for tail, label in self._into.pop(node):
            del self._from[tail][node, label]
        for head, label in self._from.pop(node):
            del self._into[head][node, label]
        del self.nodes[node]

    def order(self) -> list[str]:
        """List the nodes in topological order."""
        import networkx as nx

        return list(nx.topological_sort(self._graph()))

    def _graph(self) -> nx.DiGraph[str]:
        import networkx as nx

        return nx.DiGraph({node: self.after(node) for node in self.nodes})

    def contract(self, passed: Collection[str]) -> None:
        """Replace nodes by lines from their predecessors to their successors, fewest lines first.

        A node is kept if that would make more than DENSE lines, and more than it has itself.
        """
        rank = {node: i for i, node in enumerate(self.nodes) if node in passed}
        waiting = [(self._cost(node), i, node) for node, i in rank.items()]
        heapq.heapify(waiting)
        while waiting:
            cost, _, node = heapq.heappop(waiting)
            if node not in self.nodes or cost != self._cost(node):
                continue
            around = [*(tail for tail, _ in self._into[node]), *self.after(node)]
            if cost > max(DENSE, len(around)):
                continue
            self._replace(node)
            for near in dict.fromkeys(n for n in around if n in rank):
                heapq.heappush(waiting, (self._cost(near), rank[near], near))

    def _cost(self, node: str) -> int:
        return len(self._into[node]) * len(self._from[node])

    def _replace(self, node: str) -> None:
        ends, starts = list(self.into(node)), self._from[node]
        kinds = [(head, self._into[head][node, label]) for head, label in starts]
        self.remove(node)
        for line in ends:
            for head, kind in kinds:
                self.line(line.tail, head, _through(line.kind, kind))

    def keep_between(self, kept: Collection[str]) -> None:
        """Remove the nodes that are not on a path between two of ``kept``."""
        import networkx as nx

        graph = self._graph()
        after = {*chain.from_iterable(nx.bfs_layers(graph, kept))}
        before = {*chain.from_iterable(nx.bfs_layers(graph.reverse(copy=False), kept))}
        for node in [n for n in self.nodes if n not in after or n not in before]:
            self.remove(node)

    def reduce(self) -> int:
        """Remove orders and needs that other lines imply (transitive reduction); return how many.

        An order is implied by a path of orders, needs and events, a need by a path of needs alone.
        A graph with more than MANY_NODES nodes is not changed.
        """
        if len(self.nodes) > MANY_NODES:
            return 0
        bit = {node: 1 << i for i, node in enumerate(self.nodes)}
        ended: dict[str, int] = {}
        well: dict[str, int] = {}
        left_out = 0
        for node in self.order():
            beyond = {"order": 0, "need": 0}
            lines = [line for line in self.into(node) if line.kind != "any"]
            for tail, _, kind, _ in lines:
                beyond["order"] |= ended[tail]
                beyond["need"] |= well[tail] if kind == "need" else 0
            ended[node], well[node] = beyond["order"], beyond["need"]
            for tail, _, kind, label in lines:
                ended[node] |= bit[tail]
                well[node] |= bit[tail] if kind == "need" else 0
                if beyond.get(kind, 0) & bit[tail]:
                    del self._into[node][tail, label], self._from[tail][node, label]
                    left_out += 1
        return left_out


def _through(first: str, second: str) -> str:
    """Return the kind of the line that replaces two lines if the node between them is removed.

    >>> _through("need", "need"), _through("need", "order"), _through("need", "any")
    ('need', 'order', 'any')
    """
    if "any" in (first, second):
        return "any"
    return "need" if first == second == "need" else "order"


def plan_to_graph(plan: ActionPlan, ids: Mapping[str, str]) -> DrawnGraph:
    """Return the graph of all actions; ``ids`` maps their uuids to the names of the nodes.

    A large set of predecessors that several actions share gets a point.
    """
    graph, shared = DrawnGraph(ids.values()), _Shared(plan)
    for action in plan.actions:
        head = ids[action.uuid]
        for kind, group in shared.groups(action):
            point = shared.point_of(kind, group)
            if point is None:
                ends = group
            elif point in graph.nodes:
                ends = ()
            else:
                graph.node(point)
                ends = group
            for uuid in ends:
                graph.line(ids[uuid], point or head, kind)
            if point is not None:
                graph.line(point, head, kind)
        for source, outcomes in action.triggers:
            graph.line(ids[source], head, "trigger", " or ".join(outcomes))
    return graph


class _Shared:
    """The sets of links that several actions of a plan share; each tuple object is read once."""

    def __init__(self, plan: ActionPlan) -> None:
        groups = NumberedGroups()
        self._number = groups.number
        keys = [(kind, self._number(g)) for a in plan.actions for kind, g in self.groups(a)]
        sizes = [len(group) for group in groups.uuids]
        dense = [
            key
            for key, times in Counter(keys).items()
            if min(times, sizes[key[1]]) > 1 and times * sizes[key[1]] > DENSE
        ]
        self._dense = {key: f"p{i}" for i, key in enumerate(dense)}

    def groups(self, action: Action) -> list[tuple[str, tuple[str, ...]]]:
        """List the links of an action by kind, without parents that are equal to its needs."""
        groups = [("need", action.needs), *(("any", group) for group in action.needs_any)]
        if self._number(action.parents) != self._number(action.needs):
            groups.append(("order", action.parents))
        return groups

    def point_of(self, kind: str, group: tuple[str, ...]) -> str | None:
        """Return the id of the point of a set, or None if its lines are direct."""
        return self._dense.get((kind, self._number(group)))
