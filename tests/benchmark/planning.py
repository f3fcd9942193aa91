# SPDX-License-Identifier: Apache-2.0
"""How long planning takes, in times of what networkx takes to build a graph of the same edges.

Run it: ``python tests/benchmark/planning.py``. It prints ratios within this run, which say the same
on a fast and on a slow machine, and ends with 1 if one misses its target. Medians of runs that take
turns; no measurement is asserted by a test.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx

from planner import ActionPlan, make_plan
from planner.planners.weight import PARALLELIZATION, WEIGHTS, WeightPlanner
from planner.testing import options, surroundings

ROUNDS = 9
#: plan() at most this many times a graph of the same edges, and make_plan() from a file.
PLAN, MAKE_PLAN = 8, 50
#: Time per action at 100,000 at most this many times that at 1,000. Not 1: Python's collector sets
#: in with many objects, and looks at all of them again each time that they are a quarter more.
FLAT = 2


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    counts = (1_000, 10_000, 100_000)
    results = [*against_networkx(10_000), flatness(counts)]
    gc.disable()
    without, steady, _ = flatness(counts)
    gc.enable()
    for text, ratio, target in results:
        print(f"{text:<58} {ratio:6.2f} x   target: at most {target} x")
    print(f"{without:<58} {steady:6.2f} x   the same without Python's collector")
    return int(any(ratio > target for _, ratio, target in results))


def against_networkx(count: int) -> list[tuple[str, float, float]]:
    """Compare plan() and make_plan() with networkx, for ``count`` actions at parallelization 2."""
    plan = planned(count)()
    require_shared_parents(plan)
    edges = [(parent, action.uuid) for action in plan.actions for parent in action.parents]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "solution.json"
        file.write_text(json.dumps(document(count)), encoding="utf-8")
        times = medians(
            lambda: nx.DiGraph(edges), planned(count), lambda: make_plan(file, "weight")
        )
    graph, only_plan, whole = times
    print(f"{count:,} actions, {len(edges):,} edges; networkx: {graph * 1e3:.1f} ms")
    return [
        (f"plan(), {only_plan * 1e3:.1f} ms", only_plan / graph, PLAN),
        (f"make_plan() from JSON on disk, {whole * 1e3:.1f} ms", whole / graph, MAKE_PLAN),
    ]


def flatness(counts: tuple[int, ...]) -> tuple[str, float, float]:
    """Compare the time per action of the largest plan with that of the smallest."""
    times = medians(*map(planned, counts))
    per_action = [seconds / count * 1e6 for seconds, count in zip(times, counts, strict=True)]
    shown = ", ".join(f"{n:,}: {us:.1f}" for n, us in zip(counts, per_action, strict=True))
    return f"plan(), µs per action at {shown}", per_action[-1] / per_action[0], FLAT


def require_shared_parents(plan: ActionPlan) -> None:
    """Fail unless parents that a set shares are one object."""
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    for action in plan.actions:
        assert seen.setdefault(action.parents, action.parents) is action.parents
    print(f"{len(seen):,} sets of parents for {len(plan.actions):,} actions, each one object")


def planned(count: int) -> Callable[[], ActionPlan]:
    """Prepare a solution of ``count`` actions, half migrate and half resize, to be planned."""
    planner = WeightPlanner(surroundings())
    problem = planner.parse(document(count))
    chosen = options(WeightPlanner, weights=WEIGHTS, parallelization=PARALLELIZATION)
    return lambda: planner.plan(problem, chosen)


def document(count: int) -> dict[str, Any]:
    """Return a solution: each instance is moved, then resized."""
    instances = [f"{i:08x}-0000-4000-8000-000000000000" for i in range(count // 2)]
    move = {"migration_type": "live", "source_node": "host-1", "destination_node": "host-2"}
    moves = [
        {"action_type": "migrate", "resource_id": uuid, "input_parameters": move}
        for uuid in instances
    ]
    resizes = [
        {"action_type": "resize", "resource_id": uuid, "input_parameters": {"flavor": "m1.small"}}
        for uuid in instances
    ]
    return {"kind": "solution", "actions": moves + resizes}


def medians(*works: Callable[[], object]) -> list[float]:
    """Time each of several works, taking turns so that a busy machine slows them all alike."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for own, work in zip(taken, works, strict=True):
            gc.collect()
            began = time.perf_counter()
            work()
            own.append(time.perf_counter() - began)
    return [statistics.median(own) for own in taken]


if __name__ == "__main__":
    sys.exit(main())
