# SPDX-License-Identifier: Apache-2.0
"""Builds the graph of a drawing from a plan: links become lines, large shared sets points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from planner.model import Action, ActionPlan
from planner.render.drawn_graph import DENSE, DrawnGraph


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
        self._plan = plan  # keeps every group alive, so that no id() is used twice
        self._known: dict[int, int] = {}
        self._numbers: dict[tuple[str, ...], int] = {}
        keys = [(kind, self._number(g)) for a in plan.actions for kind, g in self.groups(a)]
        sizes = [len(group) for group in self._numbers]
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

    def _number(self, group: tuple[str, ...]) -> int:
        number = self._known.get(id(group))
        if number is None:
            number = self._known[id(group)] = self._numbers.setdefault(group, len(self._numbers))
        return number
