# SPDX-License-Identifier: Apache-2.0
"""Watcher's own engine and planner beside ours, in one process of Watcher: ratios of one run.

    .venv-watcher/bin/python -W ignore tests/benchmark/inside_watcher.py [NOPS [PLANNED]]

The engines run NOPS (500) no-ops in chunks of four with four workers, through Watcher's own handler
of action plans; the planners plan PLANNED (1,000) actions, four of a type at once. The database is
SQLite; no notifications are sent. ``python tests/watcher/environments.py`` makes the environment.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "watcher" / "lab"))

from watcher_in_one_process import OneProcessWatcher

SETTINGS = {
    "watcher_planners.weight": {"parallelization": "nop:4,migrate:4,resize:4"},
    "watcher_workflow_engines.taskflow": {"max_workers": "4"},
    "watcher_workflow_engines.actionplan": {"max_workers": "4"},
}
ENGINES = {"taskflow": "Watcher's", "actionplan": "ours"}
PLANNERS = {"weight": "Watcher's", "actionplan": "ours"}


def mixed(number):
    """Return migrations and resizes of as many instances."""
    for i in range(number):
        instance = str(uuid.UUID(int=i + 1))
        hosts = {"source_node": f"h{i % 20}", "destination_node": f"h{20 + i % 20}"}
        move = {"resource_id": instance, "migration_type": "live", **hosts}
        yield (
            ("migrate", move)
            if i % 2 == 0
            else ("resize", {"resource_id": instance, "flavor": "m1"})
        )


def timed(function, *arguments):
    """Return the seconds that a call takes, and its result."""
    began = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - began, result


def engines(watcher, number):
    """Run the same no-ops with both engines; return the seconds by engine.

    Ours runs before and after Watcher's, which takes so long that the load of the machine changes.
    """
    found = {engine: [] for engine in ENGINES}
    for engine in ("actionplan", "taskflow", "actionplan"):
        nops = [("nop", {"message": str(i)}) for i in range(number)]
        plan = watcher.schedule("actionplan", *nops)
        found[engine].append(timed(watcher.run, plan, engine)[0])
        ended = watcher.outcome(plan)
        assert ended["state"] == "SUCCEEDED", Counter(a["state"] for a in ended["actions"])
    return {engine: statistics.mean(seconds) for engine, seconds in found.items()}


def planners(watcher, number):
    """Plan the same actions with both planners; return the seconds by planner."""
    actions = list(mixed(number))
    found = {}
    for planner in reversed(PLANNERS):
        # The first plan of a process also pays for imports.
        watcher.schedule(planner, *actions[:8])
        found[planner], plan = timed(watcher.schedule, planner, *actions)
        assert len(watcher.actions(plan)) == number
    return found


def tell(what, seconds, names):
    """Print the seconds, and how many times faster ours is."""
    stock, ours = (seconds[name] for name in names)
    by_name = {names[name]: round(seconds[name], 2) for name in names}
    print(json.dumps({"what": what, **by_name, "times": round(stock / ours, 1)}), flush=True)


def main(nops=500, planned=1000):
    """Compare the planners, then the engines."""
    load = [round(value, 1) for value in os.getloadavg()]
    print(json.dumps({"load": load, "cpus": os.cpu_count()}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        watcher = OneProcessWatcher(Path(folder), SETTINGS)
        tell(f"{planned} actions planned", planners(watcher, planned), PLANNERS)
        tell(f"{nops} no-ops applied", engines(watcher, nops), ENGINES)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
