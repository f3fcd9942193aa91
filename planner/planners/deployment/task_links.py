# SPDX-License-Identifier: Apache-2.0
"""Links tasks on nodes: turns relations between task names into links between positions.

A position is the index of a task on one node, or of a join. ``requires`` and ``required_for`` match
tasks on the same node and on the sync node; cross dependencies match tasks on the nodes of their
role. If n tasks wait for m tasks, a join replaces the n x m links. A task that is on both sides is
linked directly to every other one. A cycle is told by its path, with the relation of each step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from planner.errors import InvalidInput, Mistake
from planner.plan import graph_algorithms
from planner.plan.graph_algorithms import CycleError, Predecessors
from planner.planners.deployment.name_patterns import near
from planner.planners.deployment.problem import SYNC, Relation, Task
from planner.planners.deployment.task_placement import TaskPlacement

#: Up to this number of links between two sets are direct; more go through a join.
DENSE = 16


class Choice(NamedTuple):
    """A dependency of policy ``any``, which is resolved once all other links are known.

    The task ``of`` waits for one of the sets ``one_of``; if ``forward``, one of the sets waits for
    the task. A set holds the matching tasks of one node. The sets are in document order of the
    nodes.
    """

    relation: Relation
    of: int
    one_of: Sequence[tuple[int, ...]]
    forward: bool


class Links:
    """The predecessors of each position. Tasks on nodes have the first positions, joins the last.

    All of ``before[i]`` must have succeeded before ``i`` starts; if ``i`` is an anchor, they must
    have ended. Each has the first relation that says so. One member of each set in ``any_of[i]``
    must have succeeded.
    """

    def __init__(self, placement: TaskPlacement) -> None:
        self.placement = placement
        self.before: list[dict[int, Relation | None]] = [{} for _ in placement.pairs]
        self.any_of: list[list[tuple[int, ...]]] = [[] for _ in placement.pairs]
        self.joins: dict[tuple[int, ...], int] = {}
        self.join_names: list[str] = []
        self._taken: set[str] = set()

    def __len__(self) -> int:
        """Return the number of positions, joins included."""
        return len(self.before)

    def name(self, position: int) -> str:
        """Return the name of an action or a join."""
        landed = len(self.placement.pairs)
        if position < landed:
            return self.placement.name(position)
        return self.join_names[position - landed]

    def is_join(self, position: int) -> bool:
        """Return whether a position is a join."""
        return position >= len(self.placement.pairs)

    def join(self, members: tuple[int, ...], label: str, *, one_is_enough: bool = False) -> int:
        """Return the position of the join of these members; add the join if there is none.

        The join waits for all members or, with ``one_is_enough``, for one of them. The name of a
        new join is made of ``label``.
        """
        key = (-1, *members) if one_is_enough else members
        found = self.joins.get(key)
        if found is None:
            found = self.joins[key] = len(self.before)
            self.before.append({} if one_is_enough else dict.fromkeys(members))
            self.any_of.append([members] if one_is_enough else [])
            name, number = f"join/{label}", 1
            while name in self._taken:
                number += 1
                name = f"join/{label}#{number}"
            self._taken.add(name)
            self.join_names.append(name)
        return found

    def connect(
        self, first: Sequence[int], then: Sequence[int], label: str, relation: Relation
    ) -> None:
        """Make each task of ``then`` wait for all of ``first`` except itself.

        ``label`` is part of the name of the join, if one is made.
        """
        inside = sorted(set(first).intersection(then))
        if len(inside) > 1:
            # Tasks on both sides wait for each other, which is a cycle. Two of them are enough to
            # report it.
            one, other = inside[:2]
            self.before[one][other] = self.before[other][one] = relation
            return
        outside = [i for i in then if i not in inside]
        if min(len(first), len(outside)) > 1 and len(first) * len(outside) > DENSE:
            join = self.join(tuple(first), label)
            for i in outside:
                self.before[i].setdefault(join, relation)
            outside = []
        for i in (*outside, *inside):
            for p in first:
                if p != i:
                    self.before[i].setdefault(p, relation)

    def remove_redundant(self) -> None:
        """Remove each link to a task that the same position also waits for through a join."""
        members = {join: frozenset(self.before[join]) for join in self.joins.values()}
        for i, before in enumerate(self.before[: len(self.placement.pairs)]):
            covered = [members[p] for p in before if p in members]
            if covered:
                left = ((p, r) for p, r in before.items() if not any(p in c for c in covered))
                self.before[i] = dict(left)


class Linker:
    """Turns the relations of all tasks into links, and warns of relations that match nothing."""

    def __init__(self, placement: TaskPlacement, tasks: Sequence[Task]) -> None:
        self.placement, self.links = placement, Links(placement)
        self.choices: list[Choice] = []
        self.warnings: list[Mistake] = []
        self._tasks = tasks

    def link(self) -> None:
        """Add the links of all relations; append those of policy any to ``choices`` instead."""
        for task in self._tasks:
            if task.is_group:
                self._warn_local(task)
                continue
            for relation in task.requires:
                for own, other in self._local(task, relation):
                    self.links.before[own].setdefault(other, relation)
            for relation in task.required_for:
                for own, other in self._local(task, relation):
                    self.links.before[other].setdefault(own, relation)
            for relation in (*task.cross_depends, *task.cross_depended_by):
                self._cross(task, relation)
            self._warn_local(task)
        self.warnings += self.placement.apart(self._tasks)

    def _local(self, task: Task, relation: Relation) -> Iterator[tuple[int, int]]:
        """Yield (position of the task, position of a match) for each node and the sync node."""
        here = self.placement.places[task.id]
        for task_id in self.placement.names(relation.name):
            there = self.placement.places.get(task_id, {})
            synced = there.get(SYNC)
            for uid, own in here.items():
                for other in {there.get(uid), synced} - {None, own}:
                    yield own, other  # type: ignore[misc]

    def _cross(self, task: Task, relation: Relation) -> None:
        places = self.placement.places[task.id]
        here = {uid: own for uid, own in places.items() if relation.has(uid)}
        forward = relation.field == "cross-depended-by"
        found = False
        if relation.where.kind == "self":
            sides = [([own], self.matches(relation, {uid: None})) for uid, own in here.items()]
        else:
            nodes = self.placement.cluster.of(relation.where)
            sides = [(list(here.values()), self.matches(relation, nodes))]
        for own, matched in sides:
            others = [p for positions in matched.values() for p in positions]
            found = found or (bool(others) and (len(own) > 1 or others != own))
            if relation.any_of:
                self._choose(relation, own, matched, forward)
            elif forward:
                self.links.connect(own, others, f"{task.id}@*", relation)
            else:
                label = f"{relation.name}@{relation.where.text}"
                self.links.connect(others, own, label, relation)
        if here and not found:
            self._warn_relation(task, relation)

    def _choose(
        self, relation: Relation, own: list[int], matched: Mapping[str, list[int]], forward: bool
    ) -> None:
        sets = [tuple(positions) for positions in matched.values()]
        members = {p for found in sets for p in found}
        for i in own:
            one_of = sets
            if i in members:
                without = (tuple(p for p in found if p != i) for found in sets)
                one_of = [found for found in without if found]
            if one_of:
                self.choices.append(Choice(relation, i, one_of, forward))

    def matches(self, relation: Relation, nodes: Collection[str]) -> dict[str, list[int]]:
        """Return, by node, the positions of the tasks that a relation matches on these nodes."""
        found: dict[str, list[int]] = {}
        for task_id in self.placement.names(relation.name):
            places = self.placement.places.get(task_id, {})
            for uid in nodes if len(nodes) < len(places) else places:
                if uid in nodes and uid in places:
                    found.setdefault(uid, []).append(places[uid])
        if len(found) > 1:
            return {uid: found[uid] for uid in nodes if uid in found}
        return found

    def _warn_local(self, task: Task) -> None:
        for relation in (*task.requires, *task.required_for):
            if not self.placement.names(relation.name):
                self._warn_name(relation)

    def _warn_name(self, relation: Relation) -> None:
        hint = near(relation.name, self.placement.places, self.warnings)
        text = f"no task is called {relation.name!r}{hint}"
        self.warnings.append(Mistake(text, relation.path))

    def _warn_relation(self, task: Task, relation: Relation) -> None:
        """Append a warning of a cross dependency that matches nothing.

        Unless its policy is any, there is none if no node has its role, or if no other task of that
        name runs on a node: :class:`TaskPlacement` warns of the roles.
        """
        names = self.placement.names(relation.name)
        if not names:
            self._warn_name(relation)
        elif relation.any_of or (
            any(self.placement.places.get(task_id) for task_id in names if task_id != task.id)
            and (relation.where.kind == "self" or self.placement.cluster.of(relation.where))
        ):
            text = f"{task.id} {relation.text}: no such task on these nodes, it waits for nothing"
            self.warnings.append(Mistake(text, relation.path))


def in_order(links: Links) -> list[int]:
    """Return all positions in a topological order of the links; raises CycleError."""
    before: list[Predecessors] = [
        [tuple(needs), *groups] for needs, groups in zip(links.before, links.any_of, strict=True)
    ]
    return graph_algorithms.topological_order(before)


def refusal(linker: Linker, error: CycleError) -> InvalidInput:
    """Return the error that names a shortest cycle in each strongly connected component."""
    links = linker.links
    return InvalidInput(
        _mistake(linker, [p for p in cycle if not links.is_join(p)]) for cycle in error.cycles()
    )


def _mistake(linker: Linker, path: Sequence[int]) -> Mistake:
    links, pairs = linker.links, linker.placement.pairs
    text, place = f"a cycle: {links.name(path[0])}", None
    for first, then in pairwise((*path, path[0])):
        text += f" -> {links.name(then)}"
        if relation := _behind(links, first, then):
            place = place or relation.path
            forward = relation.field in ("required_for", "cross-depended-by")
            text += f" ({pairs[first if forward else then][1].id} {relation.text})"
    return Mistake(text, place or ())


def _behind(links: Links, first: int, then: int) -> Relation | None:
    """Return the relation of a link, which may go through a join."""
    before = links.before[then]
    through = (r for p, r in before.items() if links.is_join(p) and first in links.before[p])
    return before[first] if first in before else next(through, None)
