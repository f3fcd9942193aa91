# SPDX-License-Identifier: Apache-2.0
"""What is left of the order graph of a plan, and the countdown of open predecessors in it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.plan.graph import grouped_links, order_graph
from planner.plan.model import Action

if TYPE_CHECKING:
    import networkx as nx


def completed(actions: Sequence[Action], ended: Container[str]) -> frozenset[str]:
    """Return the ended actions all of whose predecessors are completed as well.

    An ended action with an open predecessor is not completed: an operator skipped it early, or a
    predecessor is to run again. It stays in the graph, because its successors must still wait for
    its predecessors. ``actions`` are in schedule order.

    >>> a, b, c = (Action(uuid=u, action_type="nop", parents=p) for u, p in (("a", ()),
    ...            ("b", ("a",)), ("c", ("b",))))
    >>> sorted(completed([a, b, c], {"a", "b"})), sorted(completed([a, b, c], {"b"}))
    (['a', 'b'], [])
    """
    found: set[str] = set()
    for action in actions:
        if action.uuid in ended and found.issuperset(action.before()):
            found.add(action.uuid)
    return frozenset(found)


def open_graph(actions: Sequence[Action], gone: Collection[str] = frozenset()) -> nx.DiGraph[str]:
    """Return the part of the order graph that must have ended before what it leads to starts.

    That are the actions that are not in ``gone``, and the groups of links that several of them
    share, except groups of alternatives: those are open as soon as one of their members succeeds.
    """
    graph = order_graph(actions)
    alternatives = [node for node, data in graph.nodes(data=True) if data.get("kind") == "any"]
    graph.remove_nodes_from([*gone, *alternatives])
    return graph


def links(actions: Sequence[Action], gone: Collection[str] = frozenset()) -> dict[str, list[str]]:
    """Map each node of :func:`open_graph` to its successors.

    >>> first = [Action(uuid=u, action_type="nop") for u in "abc"]
    >>> second = [Action(uuid=u, action_type="nop", parents=("a", "b", "c")) for u in "xyz"]
    >>> links(first + second, gone={"c"})["b"], links(first + second)["group 0"]
    (['group 0'], ['x', 'y', 'z'])
    """
    groups, edges = grouped_links(actions)
    nodes = [action.uuid for action in actions if action.uuid not in gone]
    nodes += [group for group, kind in groups.items() if kind != "any"]
    after: dict[str, list[str]] = {node: [] for node in nodes}
    for one, other, _ in edges:
        if one in after and other in after:
            after[one].append(other)
    return after


class _Group:
    """A group of alternatives. It is open until one member has succeeded or all have ended."""

    __slots__ = ("left", "open", "waiting")

    def __init__(self, size: int) -> None:
        self.left, self.open = size, True
        self.waiting: list[str] = []


class Countdown:
    """Tracks how many links and groups each name still waits for.

    Like ``graphlib.TopologicalSorter``, but with groups of which one member is enough.

    ``after`` maps each name to its successors. ``alternatives`` maps a name to its groups: it waits
    until one member of each group has succeeded, or all have ended. An empty group is ignored. A
    group that several names share is counted only once.

    >>> countdown = Countdown({"a": ["c"], "b": ["c"], "c": [], "d": []}, {"d": [("a", "b")]})
    >>> countdown.ready(), countdown.done("a"), countdown.done("b")
    (['a', 'b'], ['d'], ['c'])
    """

    def __init__(
        self,
        after: Mapping[str, Sequence[str]],
        alternatives: Mapping[str, Iterable[tuple[str, ...]]],
    ) -> None:
        self._after = after
        self._left = dict.fromkeys(after, 0)
        for names in after.values():
            for name in names:
                self._left[name] += 1
        self._groups: defaultdict[str, list[_Group]] = defaultdict(list)
        known: dict[tuple[str, ...], _Group] = {}
        for name, sets in alternatives.items():
            for members in filter(None, sets):
                if members not in known:
                    known[members] = _Group(len(set(members)))
                    for member in set(members):
                        self._groups[member].append(known[members])
                known[members].waiting.append(name)
                self._left[name] += 1

    def __contains__(self, name: object) -> bool:
        """Return whether a name is in the graph."""
        return name in self._left

    def ready(self) -> list[str]:
        """Return the names that wait for nothing from the beginning."""
        return [name for name, left in self._left.items() if not left]

    def done(self, name: str, well: bool = True) -> list[str]:
        """Record that a name has ended; return the names that became ready by that.

        A name that is not in the graph still counts in the groups that contain it.
        """
        due = self._less(self._after.get(name, ()))
        for group in self._groups.get(name, ()):
            group.left -= 1
            if group.open and (well or not group.left):
                group.open = False
                due += self._less(group.waiting)
        return due

    def _less(self, names: Iterable[str]) -> list[str]:
        left, due = self._left, []
        for name in names:
            left[name] -= 1
            if not left[name]:
                due.append(name)
        return due
