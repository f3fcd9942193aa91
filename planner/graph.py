"""The order graph of a plan: is it one, in which waves does it go, how can it be drawn.

All functions are linear in actions and edges; a set of parents that many actions share is one
tuple object and is looked at once where that is possible.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import networkx as nx

from planner.errors import InvalidPlan
from planner.model import JOIN, Action

#: Positions that must come before one position, as the groups (parents, needs) they came in.
Before = Sequence[Sequence[int]]


class Loop(Exception):
    """No order exists; ``left`` are the positions on loops or behind them."""

    def __init__(self, left: Sequence[int]) -> None:
        self.left = tuple(left)
        super().__init__(f"{len(self.left)} positions stand on a loop or behind one")


def topological_order(before: Sequence[Before]) -> list[int]:
    """Order the positions 0..n-1 so that each follows all of its groups, else as they stand.

    The order is the one that keeps small positions first. Raises :class:`Loop`.

    >>> topological_order([[(2,)], [], [(1,)]])
    [1, 2, 0]
    """
    if _arranged(before):
        return list(range(len(before)))
    after: list[list[int]] = [[] for _ in before]
    left = [0] * len(before)
    for i, groups in enumerate(before):
        for group in groups:
            left[i] += len(group)
            for p in group:
                after[p].append(i)
    ready = [i for i, n in enumerate(left) if not n]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for j in after[i]:
            left[j] -= 1
            if not left[j]:
                heapq.heappush(ready, j)
    if len(order) < len(before):
        raise Loop([i for i, n in enumerate(left) if n])
    return order


def _arranged(before: Sequence[Before]) -> bool:
    """True if every position follows its groups already; each group object is read once."""
    latest: dict[int, int] = {}
    for i, groups in enumerate(before):
        for group in groups:
            if not group:
                continue
            last = latest.get(id(group))
            if last is None:
                last = latest[id(group)] = max(group)
            if last >= i:
                return False
    return True


def strongly_connected_components(
    before: Sequence[Iterable[Iterable[int]]], among: Iterable[int]
) -> list[frozenset[int]]:
    """List the sets of positions among which every one comes before every other: the loops.

    Source: Gabow, "Path-based depth-first search for strong and biconnected components", 2000.

    >>> strongly_connected_components([[(1,)], [(0, 2)], [(2, 3)], []], range(4))
    [frozenset({0, 1}), frozenset({2})]
    """
    unseen, left = -1, len(before)
    place = dict.fromkeys(among, unseen)
    path: list[int] = []
    begins: list[int] = []
    found = []
    for root in place:
        ahead = [(root, iter((root,)))] if place[root] == unseen else []
        while ahead:
            node, earlier = ahead[-1]
            for p in earlier:
                if place[p] == unseen:
                    place[p] = len(path)
                    begins.append(len(path))
                    path.append(p)
                    ahead.append((p, _within(before[p], place)))
                    break
                while place[p] < begins[-1]:
                    begins.pop()
            else:
                ahead.pop()
                if ahead and begins[-1] == place[node]:
                    knot = frozenset(path[begins.pop() :])
                    del path[place[node] :]
                    place.update(dict.fromkeys(knot, left))
                    if len(knot) > 1 or any(node in group for group in before[node]):
                        found.append(knot)
    return sorted(found, key=min)


def _within(groups: Iterable[Iterable[int]], positions: Container[int]) -> Iterator[int]:
    return (p for group in groups for p in group if p in positions)


def edges(actions: Sequence[Action]) -> Iterator[tuple[str, str, str]]:
    """Give every edge of the order graph as (before, after, kind).

    ``kind`` is ``need`` where success is asked for, ``any`` for one of several, ``trigger`` for an
    event, else ``order``; an edge that is more than one is given once, as the strongest.
    """
    for action in actions:
        kinds = dict.fromkeys(action.parents, "order")
        kinds.update((t.action, "trigger") for t in action.triggers)
        kinds.update((u, "any") for group in action.needs_any for u in group)
        kinds.update(dict.fromkeys(action.needs, "need"))
        for uuid, kind in kinds.items():
            yield uuid, action.uuid, kind


def digraph(actions: Sequence[Action]) -> nx.DiGraph[str]:
    """Give the order graph with uuids as nodes and the ``kind`` of each edge."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(action.uuid for action in actions)
    graph.add_edges_from((u, v, {"kind": kind}) for u, v, kind in edges(actions))
    return graph


def validate(actions: Sequence[Action]) -> None:
    """Return if the links make an acyclic graph and names are unique.

    Raises InvalidPlan with every problem: a uuid, a name or a link twice, a link to an action that
    is not in the plan, a blocker that does not come before, a loop with its whole path.
    """
    position: dict[str, int] = {}
    names: set[str] = set()
    problems = []
    for i, action in enumerate(actions):
        if action.uuid in position:
            problems.append(f"uuid {action.uuid} stands twice")
        if action.name is not None and action.name in names:
            problems.append(f"name {action.name!r} stands twice")
        position[action.uuid] = i
        if action.name is not None:
            names.add(action.name)
    before = _before(actions, position, problems)
    for action in actions:
        if action.blocked_by:
            earlier = set(action.before())
            problems += [
                f"{action.label} is blocked by {uuid}, which does not come before it"
                for uuid, _ in action.blocked_by
                if uuid not in earlier
            ]
    if not problems:
        try:
            topological_order(before)
        except Loop as loop:
            problems += [
                _loop_text(actions, before, knot)
                for knot in strongly_connected_components(before, loop.left)
            ]
    if problems:
        raise InvalidPlan(problems)


def _before(
    actions: Sequence[Action], position: Mapping[str, int], problems: list[str]
) -> list[Before]:
    """Give the links of each action by position; those that lead nowhere are problems."""
    known: dict[int, tuple[int, ...]] = {}
    before: list[Before] = []
    for action in actions:
        groups = [action.parents, action.needs, *action.needs_any]
        sources = tuple(dict.fromkeys([source for source, _ in action.triggers]))
        if sources != action.needs:
            groups.append(sources)
        before.append([_positions(group, position, known, action, problems) for group in groups])
    return before


def _positions(
    group: tuple[str, ...],
    position: Mapping[str, int],
    known: dict[int, tuple[int, ...]],
    action: Action,
    problems: list[str],
) -> tuple[int, ...]:
    if not group:
        return ()
    found = known.get(id(group))
    if found is None:
        missing = [uuid for uuid in group if uuid not in position]
        problems += [f"{action.label} comes after {u}, which is not in the plan" for u in missing]
        if len(set(group)) < len(group):
            twice = [uuid for uuid, times in Counter(group).items() if times > 1]
            problems += [f"{action.label} comes after {uuid} twice" for uuid in twice]
        found = tuple([position[uuid] for uuid in group if uuid in position])
        # Only objects that outlive this call may be known by their id.
        if group is action.parents or group is action.needs:
            known[id(group)] = found
    return found


def _loop_text(actions: Sequence[Action], before: Sequence[Before], knot: frozenset[int]) -> str:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from((p, i) for i in sorted(knot) for g in before[i] for p in g if p in knot)
    path = [u for u, _ in nx.find_cycle(graph, min(knot))]
    return "a loop: " + " -> ".join(actions[i].label for i in [*path, path[0]])


def waves(actions: Sequence[Action]) -> list[list[Action]]:
    """Group a valid plan's actions by how many others must come before them, one after another.

    Schedule order is kept inside a wave. A join takes no wave of its own and is left out; what
    comes after it comes after all that it joins.
    """
    before = _before(actions, {action.uuid: i for i, action in enumerate(actions)}, [])
    level = [0] * len(actions)
    shared: dict[int, int] = {}
    found: list[list[Action]] = []
    for i in topological_order(before):
        deepest = max((_deepest(group, level, shared) for group in before[i]), default=0)
        if actions[i].action_type == JOIN:
            level[i] = deepest
            continue
        level[i] = deepest + 1
        if deepest == len(found):
            found.append([])
        found[deepest].append(actions[i])
    return found


def _deepest(group: Sequence[int], level: Sequence[int], shared: dict[int, int]) -> int:
    if not group:
        return 0
    depth = shared.get(id(group))
    if depth is None:
        depth = shared[id(group)] = max(level[p] for p in group)
    return depth
