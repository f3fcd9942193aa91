# SPDX-License-Identifier: Apache-2.0
"""Graph algorithms on small graphs; networkx judges them on random ones."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.plan.graph_algorithms import (
    CycleError,
    reachable,
    reachable_pairs,
    shortest_cycle,
    topological_order,
)

Edges = set[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> nx.DiGraph[int]:
    """Any small graph; half of them have no cycles."""
    count = draw(st.integers(1, 9))
    node = st.integers(0, count - 1)
    edges = draw(st.sets(st.tuples(node, node), max_size=3 * count))
    if draw(st.booleans()):
        names = draw(st.permutations(range(count)))
        edges = {(names[min(edge)], names[max(edge)]) for edge in edges if len({*edge}) == 2}
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    return graph


def predecessors(graph: nx.DiGraph[int]) -> list[list[list[int]]]:
    return [[[*graph.predecessors(node)]] for node in range(len(graph))]


def on_cycles(graph: nx.DiGraph[int]) -> set[int]:
    """The nodes on cycles and those reachable from one."""
    on = {n for n in graph if any(nx.has_path(graph, m, n) for m in graph.successors(n))}
    return on.union(*(nx.descendants(graph, node) for node in on))


@given(graphs())
def test_the_topological_order_is_that_of_networkx(graph: nx.DiGraph[int]) -> None:
    assert topological_order([]) == []
    if nx.is_directed_acyclic_graph(graph):
        expected = list(nx.lexicographical_topological_sort(graph))
        in_order = all(one < other for one, other in graph.edges)
        assert topological_order(predecessors(graph)) == (sorted(graph) if in_order else expected)
    else:
        with pytest.raises(CycleError) as error:
            topological_order(predecessors(graph))
        assert {*error.value.nodes} == on_cycles(graph)


@given(graphs())
def test_components_and_cycles_of_the_error_are_those_of_networkx(graph: nx.DiGraph[int]) -> None:
    expected = [
        frozenset(nodes)
        for nodes in nx.strongly_connected_components(graph)
        if len(nodes) > 1 or any(graph.has_edge(node, node) for node in nodes)
    ]
    if not expected:
        topological_order(predecessors(graph))
        return
    with pytest.raises(CycleError) as error:
        topological_order(predecessors(graph))
    assert error.value.components() == sorted(expected, key=min)
    cycles = error.value.cycles()
    assert [cycle[0] for cycle in cycles] == sorted(map(min, expected))
    for cycle in cycles:
        assert len(cycle) == len(shortest_cycle(graph, cycle[0]))
        assert all(graph.has_edge(a, b) for a, b in pairwise((*cycle, cycle[0])))


@given(graphs())
def test_reachable_nodes_are_those_of_networkx(graph: nx.DiGraph[int]) -> None:
    for start in graph:
        expected = {start} | nx.descendants(graph, start)
        assert {*reachable([start], graph.successors)} == expected


@given(graphs())
def test_pairs_are_reachable_as_networkx_says(graph: nx.DiGraph[int]) -> None:
    forward = nx.DiGraph([(one, other) for one, other in graph.edges if one < other])
    forward.add_nodes_from(range(len(graph)))
    pairs = {(one, other) for one in forward for other in forward}
    before = [(tuple(forward.predecessors(node)),) for node in range(len(forward))]
    found = set(reachable_pairs(range(len(forward)), before.__getitem__, pairs))
    assert found == {pair for pair in pairs if nx.has_path(forward, *pair)}


@given(graphs())
def test_the_shortest_cycle_is_as_short_as_networkx_says(graph: nx.DiGraph[int]) -> None:
    for start in graph:
        lengths = [
            1 + nx.shortest_path_length(graph, after, start)
            for after in graph.successors(start)
            if nx.has_path(graph, after, start)
        ]
        if lengths:
            cycle = shortest_cycle(graph, start)
            assert cycle[0] == start
            assert len(cycle) == min(lengths)
            ends = [*cycle[1:], start]
            assert all(graph.has_edge(a, b) for a, b in zip(cycle, ends, strict=True))
        else:
            with pytest.raises(ValueError, match="is on no cycle"):
                shortest_cycle(graph, start)
