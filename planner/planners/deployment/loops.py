"""Loops among tasks: the whole path, and the relation that is behind each step of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from planner import graph
from planner.errors import InvalidInput, Mistake
from planner.planners.deployment.link import Linker, Links
from planner.planners.deployment.tasks import Relation


def refused(linker: Linker, loop: graph.Loop) -> InvalidInput:
    """Make the refusal of links that have no order: a shortest loop of each knot."""
    links = linker.links
    before = [
        [list(needs), *groups] for needs, groups in zip(links.before, links.any_of, strict=True)
    ]
    return InvalidInput(
        _mistake(linker, [p for p in _shortest(before, knot) if not links.is_join(p)])
        for knot in graph.strongly_connected_components(before, loop.left)
    )


def _shortest(before: Sequence[graph.Before], knot: frozenset[int]) -> list[int]:
    """Find a shortest loop through the first position of a knot, in the order in which it runs."""
    start = min(knot)
    towards = {start: start}
    left = deque([start])
    while left:
        at = left.popleft()
        for earlier in (p for group in before[at] for p in group if p in knot):
            if earlier == start:
                path = [at]
                while path[-1] != start:
                    path.append(towards[path[-1]])
                return [start, *path[:-1]] if len(path) > 1 else path
            if earlier not in towards:
                towards[earlier] = at
                left.append(earlier)
    raise AssertionError("a knot has a loop through each of its positions")


def _mistake(linker: Linker, path: Sequence[int]) -> Mistake:
    name = linker.links.name
    text, place = f"a loop: {name(path[0])}", None
    for first, then in zip(path, [*path[1:], path[0]], strict=True):
        relation = next(_behind(linker, first, then), None)
        place = place or (relation.path if relation else None)
        behind = f" ({_told(linker, relation, first, then)})" if relation else ""
        text += f" -> {name(then)}{behind}"
    return Mistake(text, place or ())


def _told(linker: Linker, relation: Relation, first: int, then: int) -> str:
    pairs = linker.landing.pairs
    forward = relation.field in ("required_for", "cross-depended-by")
    return f"{pairs[first if forward else then][1].id} {relation.text}"


def _behind(linker: Linker, first: int, then: int) -> Iterator[Relation]:
    """Find the relations that put one position before another."""
    landing = linker.landing
    (first_uid, earlier), (then_uid, later) = landing.pairs[first], landing.pairs[then]
    for mine, other_uid, other, own_uid in (
        ((later.requires, later.cross_depends), first_uid, earlier, then_uid),
        ((earlier.required_for, earlier.cross_depended_by), then_uid, later, first_uid),
    ):
        local, cross = mine
        for relation in local:
            if other.id in landing.names(relation.name) and other_uid in (own_uid, "sync"):
                yield relation
        for relation in cross:
            nodes = (
                {own_uid: None}
                if relation.where.kind == "self"
                else landing.cluster.of(relation.where)
            )
            if other.id in landing.names(relation.name) and other_uid in nodes:
                yield relation


def knotted(links: Links) -> list[int]:
    """Give the positions in an order that all links allow; raises ``planner.graph.Loop``."""
    return graph.topological_order(
        [[tuple(needs), *groups] for needs, groups in zip(links.before, links.any_of, strict=True)]
    )
