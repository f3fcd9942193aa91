# SPDX-License-Identifier: Apache-2.0
"""The order of a plan: its graph, its validation, and its waves.

The time of all functions is linear in actions and links. Actions with the same parents share one
tuple object, which is read only once where that is possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.errors import InvalidPlan, Mistake, Path
from planner.plan import graph_algorithms
from planner.plan.graph_algorithms import CycleError, Predecessors
from planner.plan.model import JOIN, Action, ActionPlan

if TYPE_CHECKING:
    import networkx as nx


def order_graph(plan: ActionPlan | Sequence[Action]) -> nx.DiGraph[str]:
    """Return the graph of what comes before what in a valid plan, given as a plan or its actions.

    The nodes are the uuids of the actions, with the node attribute ``action``. A group of links
    that many actions share is a node, too (``group 0``, ``group 1``, ...), so that there are n + m
    edges, not n x m; it has the node attribute ``kind``. Each edge leads to what comes later, and
    has a ``kind``: with ``need`` the earlier action must succeed, with ``trigger`` its end is an
    event, with ``order`` it must have ended. An edge of several kinds has the first of these. A
    group in ``needs_any`` is always a node: its edges are ``any``, and one member that succeeds is
    enough.

    >>> first = [Action(uuid=uuid, action_type="nop") for uuid in "abc"]
    >>> later = [Action(uuid=uuid, action_type="nop", needs=("a", "b", "c")) for uuid in "xyz"]
    >>> for one, other, kind in order_graph(first + later).edges(data="kind"):
    ...     print(one, other, kind)
    a group 0 need
    b group 0 need
    c group 0 need
    group 0 x need
    group 0 y need
    group 0 z need
    """
    import networkx as nx  # here, because it takes long, and few commands ask for the graph

    actions = plan.actions if isinstance(plan, ActionPlan) else plan
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from((action.uuid, {"action": action}) for action in actions)
    groups, edges = grouped_links(actions)
    graph.add_nodes_from((node, {"kind": kind}) for node, kind in groups.items())
    graph.add_edges_from((one, other, {"kind": kind}) for one, other, kind in edges)
    return graph


def grouped_links(
    actions: Sequence[Action],
) -> tuple[dict[str, str], Iterator[tuple[str, str, str]]]:
    """Return the kinds of the groups of an order graph, and its edges, each with its kind.

    For who only counts links: networkx takes longer to import than a short command.
    """
    groups_of_links = NumberedGroups()
    numbers, members = groups_of_links.number, groups_of_links.uuids
    users = Counter((kind, numbers(uuids)) for action in actions for kind, uuids in _links(action))
    nodes: dict[tuple[str, int], str] = {}
    for (kind, number), count in users.items():
        size = len(members[number])
        if kind == "any" or size * count > size + count:
            nodes[kind, number] = f"group {len(nodes)}"
    groups = {node: kind for (kind, _), node in nodes.items()}

    def edges() -> Iterator[tuple[str, str, str]]:
        for (kind, number), node in nodes.items():
            yield from ((uuid, node, kind) for uuid in members[number])
        for action in actions:
            kinds: dict[str, str] = {}
            for kind, uuids in _links(action):
                shared = nodes.get((kind, numbers(uuids)))
                if shared is None:
                    kinds.update(dict.fromkeys(uuids, kind))
                    continue
                if kind != "any" and kinds:
                    inside = set(uuids)
                    kinds = {one: k for one, k in kinds.items() if one not in inside}
                kinds[shared] = kind
            yield from ((one, action.uuid, kind) for one, kind in kinds.items())

    return groups, edges()


def in_topological_order(actions: Sequence[Action]) -> tuple[Action, ...]:
    """Return actions so that each follows its predecessors, of several possible ones the first.

    Raises :class:`planner.plan.graph_algorithms.CycleError` for a cycle.
    """
    before = _before(actions, {action.uuid: i for i, action in enumerate(actions)}, [])
    return tuple([actions[i] for i in graph_algorithms.topological_order(before)])


def _links(action: Action) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the groups of links of an action, each with its kind; a later kind is the stronger."""
    if action.parents and action.parents != action.needs:
        yield "order", action.parents
    if action.triggers:
        yield "trigger", tuple([source for source, _ in action.triggers])
    if action.needs:
        yield "need", action.needs
    for group in action.needs_any:
        if group:
            yield "any", group


class NumberedGroups:
    """Numbers groups of links, equal ones alike: ``uuids`` are those of each number."""

    def __init__(self) -> None:
        self.uuids: list[tuple[str, ...]] = []
        self._by_value: dict[tuple[str, ...], int] = {}
        #: Returns the number of a group. Each tuple object is read only once.
        self.number = graph_algorithms.once(self._number)

    def _number(self, uuids: tuple[str, ...]) -> int:
        number = self._by_value.setdefault(uuids, len(self.uuids))
        if number == len(self.uuids):
            self.uuids.append(uuids)
        return number


def validate(actions: Sequence[Action]) -> None:
    """Check that the links of a plan form an acyclic graph, and that uuids and names are unique.

    Raises InvalidPlan with every problem: a duplicate uuid, name or link; a link to an action that
    is not in the plan; a blocker that is not a predecessor. Only without any of these, cycles are
    searched; each is raised with its whole path.
    """
    position: dict[str, int] = {}
    names: set[str] = set()
    problems: list[Mistake] = []
    for i, action in enumerate(actions):
        if action.uuid in position:
            problems.append(Mistake(f"uuid {action.uuid} occurs twice", ("actions", i, "uuid")))
        position[action.uuid] = i
        if action.name is not None:
            if action.name in names:
                text = f"name {action.name!r} occurs twice"
                problems.append(Mistake(text, ("actions", i, "name")))
            names.add(action.name)
    before = _before(actions, position, problems)
    for i, action in enumerate(actions):
        if action.blocked_by:
            earlier = set(action.before())
            problems += [
                Mistake(
                    f"{action.label} is blocked by {uuid}, which does not come before it",
                    ("actions", i, "blocked_by", k),
                )
                for k, (uuid, _) in enumerate(action.blocked_by)
                if uuid not in earlier
            ]
    if not problems:
        try:
            graph_algorithms.topological_order(before)
        except CycleError as error:
            problems += [_cycle(actions, cycle) for cycle in error.cycles()]
    if problems:
        raise InvalidPlan(problems)


def _before(
    actions: Sequence[Action], position: Mapping[str, int], problems: list[Mistake]
) -> list[Predecessors]:
    """Translate the links of each action into positions, without empty groups of links.

    Append a problem for each link that is unknown or duplicate.
    """
    # id() identifies an object only while it exists: the links outlive this call.
    known: dict[int, tuple[int, ...]] = {}
    before: list[Predecessors] = []
    for i, action in enumerate(actions):
        groups = []
        for group in (action.parents, action.needs, *action.needs_any):
            if group:
                found = known.get(id(group))
                if found is None:
                    found = known[id(group)] = _positions(group, position, actions, i, problems)
                groups.append(found)
        if action.triggers:
            sources = tuple(dict.fromkeys([source for source, _ in action.triggers]))
            if sources != action.needs:
                groups.append(_positions(sources, position, actions, i, problems))
        before.append(groups)
    return before


def _positions(
    group: tuple[str, ...],
    position: Mapping[str, int],
    actions: Sequence[Action],
    i: int,
    problems: list[Mistake],
) -> tuple[int, ...]:
    """Translate a group of links of action ``i``; append a problem for each wrong link."""
    found = tuple([position[uuid] for uuid in group if uuid in position])
    if len(set(found)) < len(group):
        label = actions[i].label
        wrong = [
            (uuid, f"{label} comes after {uuid}, which is not in the plan")
            for uuid in group
            if uuid not in position
        ]
        twice = [uuid for uuid, times in Counter(group).items() if times > 1]
        wrong += [(uuid, f"{label} comes after {uuid} twice") for uuid in twice]
        paths = _paths_of_links(actions[i], i)
        problems += [Mistake(text, paths[uuid]) for uuid, text in wrong]
    return found


def _paths_of_links(action: Action, i: int) -> dict[str, Path]:
    """Return the path in the plan of each link of action ``i``, by the uuid that it leads to."""
    lists: list[tuple[Path, Sequence[str]]] = [
        (("parents",), action.parents),
        (("needs",), action.needs),
    ]
    lists += [(("needs_any", g), group) for g, group in enumerate(action.needs_any)]
    lists += [(("triggers",), [trigger.action for trigger in action.triggers])]
    return {
        uuid: ("actions", i, *inside, k) for inside, uuids in lists for k, uuid in enumerate(uuids)
    }


def _cycle(actions: Sequence[Action], cycle: Sequence[int]) -> Mistake:
    """Return the problem of a cycle; its path is that of the link that closes it."""
    text = "a cycle: " + " -> ".join(actions[i].label for i in (*cycle, cycle[0]))
    last = actions[cycle[-1]].uuid
    return Mistake(text, _paths_of_links(actions[cycle[0]], cycle[0])[last])


def waves(actions: Sequence[Action]) -> list[list[Action]]:
    """Group the actions of a valid plan by the length of the longest path that leads to them.

    The actions of a wave are in schedule order. Joins are in no wave, and do not count in the
    length of a path.
    """
    try:
        return _waves(actions)
    except KeyError:
        # An action is listed before one of its predecessors.
        return _waves(in_topological_order(actions))


def _waves(actions: Iterable[Action]) -> list[list[Action]]:
    """Group actions that are listed after their predecessors; raises KeyError if one is not."""
    level: dict[str, int] = {}

    def deepest_of(group: tuple[str, ...]) -> int:
        return max([level[uuid] for uuid in group])

    depth = graph_algorithms.once(deepest_of)
    found: list[list[Action]] = []
    for action in actions:
        deepest = 0
        if action.triggers:
            deepest = max([level[source] for source, _ in action.triggers])
        for group in (action.parents, action.needs, *action.needs_any):
            if group:
                deepest = max(deepest, depth(group))
        if action.action_type == JOIN:
            level[action.uuid] = deepest
            continue
        level[action.uuid] = deepest + 1
        if deepest == len(found):
            found.append([])
        found[deepest].append(action)
    return found
