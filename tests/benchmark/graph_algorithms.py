# SPDX-License-Identifier: Apache-2.0
"""How long graph algorithms take: this product's, and those of networkx.

Run it: ``python tests/benchmark/graph_algorithms.py``. It prints what decision 0035 compares, in
processor time, medians of runs that take turns, and has no target: nothing is asserted. networkx
builds a graph object first; that is a part of its time, and of its memory.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

import networkx as nx

from planner import order_graph
from planner.plan import graph_algorithms
from planner.plan.model import Action
from planner.planners.events.cutting import dominators

ROUNDS = 5
NODES, EDGES = 10_000, 50_000
Links = list[list[int]]


def main() -> None:
    """Measure and print."""
    for name, reverse in (("in order", False), ("reversed", True)):
        print(f"{NODES:,} nodes, {EDGES:,} edges, {name}")
        compare(*acyclic(reverse))
    print("seconds of processor time that an import takes, beside Python's start")
    print(f"  {'networkx':<34} {imported('networkx'):7.3f}")


def acyclic(reverse: bool) -> tuple[Links, Links]:
    """Return successors and predecessors by node; in order, every edge leads to a larger node."""
    chance = random.Random(1)
    pairs = {(min(p), max(p)) for p in (chance.sample(range(NODES), 2) for _ in range(EDGES))}
    after: Links = [[] for _ in range(NODES)]
    before: Links = [[] for _ in range(NODES)]
    for one, other in sorted(pairs):
        first, second = (NODES - 1 - one, NODES - 1 - other) if reverse else (one, other)
        after[first].append(second)
        before[second].append(first)
    return after, before


def compare(after: Links, before: Links) -> None:
    """Print time and memory of each algorithm, and how many times ours that is."""
    groups = [[tuple(nodes)] for nodes in before]
    actions = [
        Action(uuid=str(i), action_type="nop", parents=tuple(map(str, nodes)))
        for i, nodes in enumerate(before)
    ]
    cyclic = [[(*nodes, *after[i][:1])] for i, nodes in enumerate(before)]
    works: dict[str, dict[str, Callable[[], object]]] = {
        "topological order, smallest first": {
            "own": lambda: graph_algorithms.topological_order(groups),
            "networkx": lambda: list(nx.lexicographical_topological_sort(graph(after))),
        },
        "strongly connected components": {
            "networkx": lambda: graph_algorithms.cyclic_components(
                graph([list(group) for (group,) in cyclic])
            ),
        },
        "reachable from one node": {
            "own": lambda: graph_algorithms.reachable([NODES // 2], after.__getitem__),
            "networkx": lambda: nx.descendants(graph(after), NODES // 2),
        },
        "a shortest cycle": {
            "networkx": lambda: graph_algorithms.shortest_cycle(
                graph([list(group) for (group,) in cyclic]), 0
            ),
        },
        "the order graph of a plan": {"networkx": lambda: order_graph(actions)},
    }
    # A chain, from each node of which edges lead back.
    deep = [[node + 1] * (node + 1 < NODES) + nodes for node, nodes in enumerate(before)]
    works["dominators, chain and back"] = {
        "own": lambda: dominators(deep, 0),
        "networkx": lambda: nx.immediate_dominators(graph(deep), 0),
    }
    building = medians(lambda: graph(after))[0]
    print(f"  {'the graph object alone':<34} networkx  {building * 1e3:7.1f} ms")
    for name, rivals in works.items():
        times = medians(*rivals.values())
        for rival, taken in zip(rivals, times, strict=True):
            print(
                f"  {name:<34} {rival:<9} {taken * 1e3:7.1f} ms {taken / times[0]:5.1f} x "
                f"{memory(rivals[rival]) / 1e6:6.1f} MB"
            )


def graph(after: Links) -> nx.DiGraph[int]:
    """Build the graph object of networkx."""
    made: nx.DiGraph[int] = nx.DiGraph()
    made.add_nodes_from(range(len(after)))
    made.add_edges_from((one, other) for one, nodes in enumerate(after) for other in nodes)
    return made


def medians(*works: Callable[[], object]) -> list[float]:
    """Time works that take turns; the median of each, in seconds of the processor."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, measured in zip(works, times, strict=True):
            begin = time.process_time()
            work()
            measured.append(time.process_time() - begin)
    return [statistics.median(measured) for measured in times]


def memory(work: Callable[[], object]) -> int:
    """Return the most bytes that a work holds at once."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def imported(module: str) -> float:
    """Return the seconds of processor time that importing a module takes in a new Python."""

    def took(code: str) -> float:
        script = f"import time; {code}; print(time.process_time())"
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        return float(ran.stdout)

    with_it, without = (
        statistics.median(took(code) for _ in range(ROUNDS)) for code in (f"import {module}", "0")
    )
    return with_it - without


if __name__ == "__main__":
    main()
