# SPDX-License-Identifier: Apache-2.0
"""How long a deployment of 100 nodes takes to plan, and how long it would run.

Run it: ``python tests/benchmark/deployment.py [TASKS]``. TASKS is a file with a task set of Fuel;
where left out, a set is generated that has the shape of release 8.0. It is planned for 3
controllers and 97 compute nodes. Planning is measured in times of what networkx takes to build a
graph of the same edges, without joins. Running is simulated with one tick for each task; anchors
take none. Conditions are left out and tasks of type skipped run, so that each task counts, as in
the figures that Fuel's own engine is known by. It ends with 1 if a target is missed; no measurement
is asserted by a test.
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import yaml

from applier.scheduling.concurrency import Concurrency
from applier.scheduling.forecast import Forecast, forecast
from planner import documents, make_plan
from planner.plan.model import ActionPlan
from planner.planners.deployment import message
from planner.planners.deployment.planner import DeploymentPlanner
from planner.testing import plan

sys.path.insert(0, str(Path(__file__).parents[1]))
import fuel_tasks

ROUNDS = 7
#: Parse and plan at most this many times a graph of the same edges.
PLAN = 15
#: Most busy nodes -> at most so many ticks; None is any number.
TICKS = {None: 128, 50: 140, 20: 210}


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    given = sys.argv[1:]
    tasks = documents.read(Path(given[0])).value if given else fuel_tasks.generated()
    missed = against_networkx(tasks)
    print("one tick for each task:")
    missed |= makespans(tasks, lambda _: 1.0, TICKS)
    print("durations from 1 to 9 ticks, one for each task id:")
    chance = random.Random(8)
    lengths = {task["id"]: float(chance.randint(1, 9)) for task in tasks}
    makespans(tasks, lambda name: lengths[name.partition("/")[2]], dict.fromkeys(TICKS))
    return int(missed)


def document(tasks: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """Return the deployment on 3 controllers and 97 compute nodes; each task runs."""
    whole = [{k: v for k, v in task.items() if k != "condition"} for task in tasks]
    for task in whole:
        task["type"] = "shell" if task["type"] == "skipped" else task["type"]
        if task["type"] == "shell":
            task["version"] = "2.0.0"
    nodes = fuel_tasks.nodes(tasks, 97)
    return {"kind": "deployment", "names": "exact", "tasks": whole, "nodes": nodes, **fields}


def planned(tasks: list[dict[str, Any]], **fields: Any) -> ActionPlan:
    """Check, parse and plan."""
    return plan(DeploymentPlanner, document(tasks, **fields), check_types=False)


def against_networkx(tasks: list[dict[str, Any]]) -> bool:
    """Compare planning with networkx; return whether the target is missed."""
    made = planned(tasks)
    edges = list(expanded(made))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "deployment.yaml"
        file.write_text(yaml.safe_dump(document(tasks)), encoding="utf-8")
        graph, whole, read = medians(
            lambda: nx.DiGraph(edges),
            lambda: planned(tasks),
            lambda: make_plan(file, check_types=False),
        )
    print(f"{len(made.actions):,} actions, {len(edges):,} edges; networkx: {graph * 1e3:.1f} ms")
    text = f"parse and plan, {whole * 1e3:.1f} ms"
    print(f"{text:<40} {whole / graph:6.2f} x   target: at most {PLAN} x")
    text = f"make_plan() from YAML on disk, {read * 1e3:.1f} ms"
    print(f"{text:<40} {read / graph:6.2f} x")
    return whole / graph > PLAN


def expanded(made: ActionPlan) -> Iterator[tuple[str, str]]:
    """Yield every edge between tasks, without joins."""
    for node in message.write(made)["nodes"]:
        for task in node["tasks"]:
            groups = [link for group in task.get("requires_any", ()) for link in group]
            for link in [*task.get("requires", ()), *task.get("after", ()), *groups]:
                yield f"{link['node']}/{link['task']}", f"{node['node']}/{task['task']}"


def makespans(
    tasks: list[dict[str, Any]],
    length: Callable[[str], float],
    targets: Mapping[int | None, int | None],
) -> bool:
    """Print how long it runs for each number of busy nodes, the role-based way beside it."""
    missed = False
    for cap, target in targets.items():
        found, busiest = simulated(planned(tasks, max_nodes=cap), length)
        roles, _ = simulated(planned(tasks, max_nodes=cap, deployment_engine="role"), length)
        ticks, nodes = found.timeline.makespan_s, f"{cap or 'all'} nodes busy"
        aim = f"   target: at most {target}" if target else ""
        print(
            f"  {nodes:<16} {ticks:5.0f} ticks   bound {found.lower_bound_s:5.1f}, busiest node "
            f"{busiest:3.0f}   role-based {roles.timeline.makespan_s:5.0f}{aim}"
        )
        missed |= target is not None and ticks > target
    return missed


def simulated(made: ActionPlan, length: Callable[[str], float]) -> tuple[Forecast, float]:
    """Run the scheduler with a simulated clock; also return the work of the busiest node."""
    lasts = {a.uuid: length(a.label) if a.tokens else 0.0 for a in made.actions}
    work: Counter[str] = Counter()
    for action in made.actions:
        work[action.label.partition("/")[0]] += lasts[action.uuid]  # type: ignore[assignment]
    concurrency = Concurrency(limits=made.limits, max_workers=len(made.actions))
    found = forecast(made.actions, lasts, concurrency)
    return found, max(work.values())


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
