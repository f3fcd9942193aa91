# SPDX-License-Identifier: Apache-2.0
"""The order graph of a plan: its edges and their kinds, its validation, and its waves.

An edge leads from an action to one that must not start before. The time of all functions is linear
in actions and edges. Actions with the same parents share one tuple object, which is read only once
where that is possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from planner import graph_algorithms
from planner.errors import InvalidPlan, Mistake, Path
from planner.graph_algorithms import CycleError, Predecessors
from planner.model import JOIN, Action


def edges(actions: Sequence[Action]) -> Iterator[tuple[str, str, str]]:
    """Yield every edge of the order graph: uuid of the predecessor, uuid of the successor, kind.

    ``kind`` is ``need`` if the predecessor must succeed, ``any`` if it is one of a group of which
    one must succeed, ``trigger`` for an event, and ``order`` otherwise. An edge of several kinds is
    yielded once, as the first of: need, any, trigger, order.
    """
    for action in actions:
        kinds = dict.fromkeys(action.parents, "order")
        kinds.update((t.action, "trigger") for t in action.triggers)
        kinds.update((u, "any") for group in action.needs_any for u in group)
        kinds.update(dict.fromkeys(action.needs, "need"))
        for uuid, kind in kinds.items():
            yield uuid, action.uuid, kind


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
            problems += [
                _cycle(actions, graph_algorithms.cycle_in(before, component))
                for component in graph_algorithms.strongly_connected_components(before, error.nodes)
            ]
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
        before = _before(actions, {action.uuid: i for i, action in enumerate(actions)}, [])
        return _waves([actions[i] for i in graph_algorithms.topological_order(before)])


def _waves(actions: Iterable[Action]) -> list[list[Action]]:
    """Group actions that are listed after their predecessors; raises KeyError if one is not."""
    level: dict[str, int] = {}
    shared: dict[int, int] = {}
    found: list[list[Action]] = []
    for action in actions:
        deepest = 0
        if action.triggers:
            deepest = max([level[source] for source, _ in action.triggers])
        for group in (action.parents, action.needs, *action.needs_any):
            if group:
                depth = shared.get(id(group))
                if depth is None:
                    depth = shared[id(group)] = max([level[uuid] for uuid in group])
                deepest = max(deepest, depth)
        if action.action_type == JOIN:
            level[action.uuid] = deepest
            continue
        level[action.uuid] = deepest + 1
        if deepest == len(found):
            found.append([])
        found[deepest].append(action)
    return found
