# SPDX-License-Identifier: Apache-2.0
"""Cutting loops quickly gives what the rule gives, followed to the letter."""

from __future__ import annotations

from unittest import mock

import networkx as nx
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.planners.events import cutting
from planner.planners.events.cutting import cut
from planner.planners.events.event_graph import reachable_pairs

Edges = set[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges, Edges, set[int]]:
    """Any graph of which each node is reached from a root over loose edges."""
    count = draw(st.integers(1, 8))
    node = st.integers(0, count - 1)
    loose = draw(st.sets(st.tuples(node, node), max_size=3 * count))
    fixed = draw(st.sets(st.tuples(node, node), max_size=count)) if draw(st.booleans()) else set()
    roots = draw(st.sets(node))
    return count, fixed, loose, roots | set(range(count)) - reached(count, loose, roots)


def graph_of(count: int, edges: Edges) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    return graph


def reached(count: int, edges: Edges, roots: set[int]) -> set[int]:
    graph = graph_of(count, edges)
    return roots.union(*(nx.descendants(graph, root) for root in roots))


def by_the_letter(count: int, fixed: Edges, loose: Edges, roots: set[int]) -> list[tuple[int, int]]:
    """Begin anew after each cut, and look at everything again."""
    left, found = set(loose), []
    while True:
        graph = graph_of(count, fixed | left)
        for edge in sorted(left - fixed):
            turns = nx.has_path(graph, edge[1], edge[0])
            if turns and len(reached(count, left - {edge}, roots)) == count:
                left.remove(edge)
                found.append(edge)
                break
        else:
            return found


@settings(max_examples=examples(400))
@given(graphs(), st.sampled_from([0, cutting.PATIENCE]))
def test_the_edges_cut_are_those_of_the_rule(
    given_graph: tuple[int, Edges, Edges, set[int]], patience: int
) -> None:
    count, fixed, loose, roots = given_graph
    with mock.patch.object(cutting, "PATIENCE", patience):
        found = cut(count, fixed, loose, roots)
    assert found.edges == by_the_letter(count, fixed, loose, roots)
    left = graph_of(count, (fixed | loose) - set(found.edges) | fixed)
    assert bool(found.left) is not nx.is_directed_acyclic_graph(left)
    for nodes in found.left:
        assert nx.is_strongly_connected(left.subgraph(nodes))


@given(graphs())
def test_behind_is_what_can_be_walked_to(given_graph: tuple[int, Edges, Edges, set[int]]) -> None:
    count, _, loose, _ = given_graph
    forward = {(a, b) for a, b in loose if a < b}
    pairs = {(a, b) for a in range(count) for b in range(count)}
    graph = graph_of(count, forward)
    found = set(reachable_pairs(range(count), forward, pairs))
    assert found == {(a, b) for a, b in pairs if nx.has_path(graph, a, b)}
