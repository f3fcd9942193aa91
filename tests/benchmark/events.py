# SPDX-License-Identifier: Apache-2.0
"""How long planning of events takes, in times of what networkx takes to build the same graph.

Run it: ``python tests/benchmark/events.py``. It prints ratios within this run, and ends with 1 if
one misses its target. Medians, in processor time, of runs that take turns; no test asserts one.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Collection
from typing import Any

import networkx as nx

from planner import make_plan
from planner.planners.events.planner import EventsPlanner
from planner.testing import surroundings

ROUNDS = 5
RESOURCES, EVENTS = 10_000, 50_000
#: Planning that many events takes at most so many times a graph of the same edges; with fewer, that
#: are all on loops, the graph says little, and what is bounded is growth.
PLAN, GROWTH = 15, 3
Edges = Collection[tuple[int, int]]


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    missed = False
    for name, edges, staged in shapes(RESOURCES, EVENTS):
        asked = document(edges, staged)
        maker = EventsPlanner(surroundings())
        problem = maker.parse(asked)
        graph, whole, plan = medians(
            lambda edges=edges: nx.DiGraph(edges),
            lambda asked=asked: make_plan(asked),
            lambda maker=maker, problem=problem: maker.plan(problem, None),
        )
        made = make_plan(asked)
        repeats = sum("runs again" in str(action.reason) for action in made.actions)
        print(
            f"{name:<36} {len(edges):>6} events {repeats:>6} repeats; networkx {graph * 1e3:4.0f} "
            f"ms, make_plan() {whole / graph:6.2f} x, plan() {plan / graph:6.2f} x"
        )
        if len(edges) > 0.9 * EVENTS:
            missed |= whole / graph > PLAN
    for name, times in growth():
        print(f"{name:<36} time per event, of twice as many: {times:.2f} x, at most {GROWTH} x")
        missed |= times > GROWTH
    return int(missed)


def growth() -> list[tuple[str, float]]:
    """Compare the time per event with that of half as many."""
    small, large = (shapes(count, 5 * count) for count in (RESOURCES // 2, RESOURCES))
    found = []
    for (name, few, some), (_, many, all_of_them) in zip(small, large, strict=True):
        asked = document(few, some), document(many, all_of_them)
        first, second = medians(*(lambda a=a: make_plan(a) for a in asked))
        found.append((name, second / len(many) / (first / len(few))))
    return found


def shapes(count: int, number: int) -> list[tuple[str, Edges, Collection[int]]]:
    """Return edges between numbered resources, and which of them are staged."""
    chance = random.Random(1)
    every = range(count)
    shuffled = chance.sample(every, count)
    forward = {(min(p), max(p)) for p in (chance.sample(every, 2) for _ in range(number))}
    tree = {(chance.randrange(i), i) for i in range(1, count)}
    anyhow = {(chance.randrange(count), chance.randrange(count)) for _ in range(number)}
    chain = {(i, i + 1) for i in range(count - 1)}
    clusters = {(i, i // 20 * 20 + chance.randrange(20)) for i in every for _ in range(4)}
    ring = {(shuffled[i - 1], shuffled[i]) for i in every}
    both_ways = {*ring, *((b, a) for a, b in ring)}
    return [
        ("no loops, all staged", forward, every),
        ("no loops, one staged", forward | tree, [0]),
        ("a few loops", {*list(forward | tree), *((b, a) for a, b in list(tree)[:100])}, [0]),
        ("one ring", ring, [shuffled[0]]),
        ("a ring both ways", both_ways, [shuffled[0]]),
        ("a chain, and back from anywhere", chain | {(b, a) for a, b in forward}, [0]),
        ("clusters on a chain", chain | clusters, [0]),
        ("random, all staged", anyhow, every),
        ("random, one staged", anyhow | tree, [0]),
    ]


def document(edges: Edges, staged: Collection[int]) -> dict[str, Any]:
    """Write edges as events."""
    return {
        "kind": "events",
        "events": [f"on r{one}.run changed r{other}.run" for one, other in edges],
        "staged": [f"r{number}.run" for number in staged],
    }


def medians(*calls: Callable[[], object]) -> list[float]:
    """Time calls that take turns; the median of each, in seconds of the processor."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, measured in zip(calls, times, strict=True):
            begin = time.process_time()
            call()
            measured.append(time.process_time() - begin)
    return [statistics.median(measured) for measured in times]


if __name__ == "__main__":
    sys.exit(main())
