"""Which task on which node waits for which: relations between names become links by position.

``requires`` and ``required_for`` look on the same node and on the sync node; cross dependencies on
the nodes of their role. Where n tasks wait for m, a join stands between them, and the task that is
on both sides keeps links of its own, without that to itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from planner.errors import Mistake
from planner.planners.deployment.name_patterns import near
from planner.planners.deployment.placement import Placement
from planner.planners.deployment.tasks import SYNC, Relation, Task

#: Up to so many links are written out; more of them go through a join.
DENSE = 16


class Choice(NamedTuple):
    """One dependency of policy ``any`` that is to be settled once all others are known.

    ``of`` waits for one of the sets ``one_of``, or, if it is ``forward``, one of them waits for
    it. A set is the matching tasks of one node; they stand in document order of the nodes.
    """

    relation: Relation
    of: int
    one_of: Sequence[tuple[int, ...]]
    forward: bool


class Links:
    """What comes before what, by position: first the landed tasks, then joins.

    ``before[i]`` must have ended well before i starts (for an anchor: ended). ``any_of[i]`` are
    sets of which one each must have ended well.
    """

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.before: list[dict[int, None]] = [{} for _ in placement.pairs]
        self.any_of: list[list[tuple[int, ...]]] = [[] for _ in placement.pairs]
        self.joins: dict[tuple[int, ...], int] = {}
        self.join_names: list[str] = []
        self._taken: set[str] = set()

    def __len__(self) -> int:
        """How many positions there are, joins among them."""
        return len(self.before)

    def name(self, position: int) -> str:
        """Give the name of an action or a join."""
        landed = len(self.placement.pairs)
        if position < landed:
            return self.placement.name(position)
        return self.join_names[position - landed]

    def is_join(self, position: int) -> bool:
        """Does it stand only for links?"""
        return position >= len(self.placement.pairs)

    def join(self, members: tuple[int, ...], label: str, *, one_is_enough: bool = False) -> int:
        """Give the join of these members; those with equal members are one."""
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

    def connect(self, first: Sequence[int], then: Sequence[int], label: str) -> None:
        """Let all of ``then`` wait for all of ``first``, nobody for itself."""
        inside = sorted(set(first).intersection(then))
        if len(inside) > 1:
            # Each of these waits for each other: that is a loop, and two of them show it.
            one, other = inside[:2]
            self.before[one][other] = self.before[other][one] = None
            return
        outside = [i for i in then if i not in inside]
        if min(len(first), len(outside)) > 1 and len(first) * len(outside) > DENSE:
            join = self.join(tuple(first), label)
            for i in outside:
                self.before[i][join] = None
        else:
            for i in outside:
                self.before[i].update(dict.fromkeys(first))
        for i in inside:
            self.before[i].update((p, None) for p in first if p != i)

    def remove_redundant(self) -> None:
        """Leave out links that a join of the same position stands for already."""
        members = {join: frozenset(self.before[join]) for join in self.joins.values()}
        for i, before in enumerate(self.before[: len(self.placement.pairs)]):
            covered = [members[p] for p in before if p in members]
            if covered:
                self.before[i] = {p: None for p in before if not any(p in c for c in covered)}


class Linker:
    """Turns the relations of all tasks into links, and remembers what led nowhere."""

    def __init__(self, placement: Placement, tasks: Sequence[Task]) -> None:
        self.placement, self.links = placement, Links(placement)
        self.choices: list[Choice] = []
        self.doubts: list[Mistake] = []
        self._tasks = tasks

    def link(self) -> None:
        """Link everything that leaves no choice; those that do are left in ``choices``."""
        for task in self._tasks:
            if task.is_group:
                self._doubt_names((*task.requires, *task.required_for))
                continue
            for relation in task.requires:
                for own, other in self._local(task, relation):
                    self.links.before[own][other] = None
            for relation in task.required_for:
                for own, other in self._local(task, relation):
                    self.links.before[other][own] = None
            for relation in (*task.cross_depends, *task.cross_depended_by):
                self._cross(task, relation)
            self._doubt_names((*task.requires, *task.required_for))

    def _local(self, task: Task, relation: Relation) -> Iterator[tuple[int, int]]:
        """Give (own position, other position) for each match on the same node, or on sync."""
        here = self.placement.places[task.id]
        for task_id in self.placement.names(relation.name):
            there = self.placement.places.get(task_id, {})
            synced = there.get(SYNC)
            for uid, own in here.items():
                for other in {there.get(uid), synced} - {None, own}:
                    yield own, other  # type: ignore[misc]

    def _cross(self, task: Task, relation: Relation) -> None:
        here = self.placement.places[task.id]
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
                self.links.connect(own, others, _label(task.id, None))
            else:
                self.links.connect(others, own, _label(relation.name, relation))
        if here and not found:
            self._doubt_relation(task, relation)

    def _choose(
        self, relation: Relation, own: list[int], matched: Mapping[str, list[int]], forward: bool
    ) -> None:
        sets = [tuple(positions) for positions in matched.values()]
        for i in own:
            one_of = [found for found in sets if found != (i,)]
            if any(i in found for found in one_of):
                one_of = [tuple(p for p in found if p != i) for found in one_of]
            if one_of:
                self.choices.append(Choice(relation, i, one_of, forward))

    def matches(self, relation: Relation, nodes: Collection[str]) -> dict[str, list[int]]:
        """Give the positions that a relation means on these nodes, node by node."""
        found: dict[str, list[int]] = {}
        for task_id in self.placement.names(relation.name):
            places = self.placement.places.get(task_id, {})
            for uid in nodes if len(nodes) < len(places) else places:
                if uid in nodes and uid in places:
                    found.setdefault(uid, []).append(places[uid])
        if len(found) > 1:
            return {uid: found[uid] for uid in nodes if uid in found}
        return found

    def _doubt_names(self, relations: Iterable[Relation]) -> None:
        for relation in relations:
            if not self.placement.names(relation.name):
                self._doubt_name(relation)

    def _doubt_name(self, relation: Relation) -> None:
        text = f"no task is called {relation.name!r}{near(relation.name, self.placement.places)}"
        self.doubts.append(Mistake(text, relation.path))

    def _doubt_relation(self, task: Task, relation: Relation) -> None:
        """Tell of a cross dependency that means nobody, unless its role has been told of."""
        names = self.placement.names(relation.name)
        if not names:
            self._doubt_name(relation)
        elif relation.any_of or (
            any(self.placement.places.get(task_id) for task_id in names if task_id != task.id)
            and (relation.where.kind == "self" or self.placement.cluster.of(relation.where))
        ):
            text = f"{task.id} {relation.text}: no such task on these nodes, it waits for nothing"
            self.doubts.append(Mistake(text, relation.path))


def _label(name: str, relation: Relation | None) -> str:
    role = relation.where.text if relation else "*"
    return f"{name}@{role}"
