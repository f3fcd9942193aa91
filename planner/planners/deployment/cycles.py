# SPDX-License-Identifier: Apache-2.0
"""Errors for dependency cycles among tasks: the path of each, with the relation of each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from planner import graph_algorithms
from planner.errors import InvalidInput, Mistake
from planner.graph_algorithms import CycleError, Predecessors
from planner.planners.deployment.problem import Relation
from planner.planners.deployment.task_links import Linker, Links


def topological_order(links: Links) -> list[int]:
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
    name = linker.links.name
    text, place = f"a cycle: {name(path[0])}", None
    for first, then in pairwise((*path, path[0])):
        relation = next(_relations_between(linker, first, then), None)
        place = place or (relation.path if relation else None)
        behind = f" ({_described(linker, relation, first, then)})" if relation else ""
        text += f" -> {name(then)}{behind}"
    return Mistake(text, place or ())


def _described(linker: Linker, relation: Relation, first: int, then: int) -> str:
    pairs = linker.placement.pairs
    forward = relation.field in ("required_for", "cross-depended-by")
    return f"{pairs[first if forward else then][1].id} {relation.text}"


def _relations_between(linker: Linker, first: int, then: int) -> Iterator[Relation]:
    """Yield the relations that link one position to another."""
    placement = linker.placement
    (first_uid, earlier), (then_uid, later) = placement.pairs[first], placement.pairs[then]
    for mine, other_uid, other, own_uid in (
        ((later.requires, later.cross_depends), first_uid, earlier, then_uid),
        ((earlier.required_for, earlier.cross_depended_by), then_uid, later, first_uid),
    ):
        local, cross = mine
        for relation in local:
            if other.id in placement.names(relation.name) and other_uid in (own_uid, "sync"):
                yield relation
        for relation in cross:
            nodes = (
                {own_uid: None}
                if relation.where.kind == "self"
                else placement.cluster.of(relation.where)
            )
            if other.id in placement.names(relation.name) and other_uid in nodes:
                yield relation
