# SPDX-License-Identifier: Apache-2.0
"""Deploys a hundred simulated nodes again and again, some tasks failing, and checks each report.

``python tests/campaign/deployments.py [--times N] [--failing SHARE] [TASKS]``. TASKS is a file with
a task set of Fuel; where left out, a set is generated that has the shape of release 8.0. The
drivers of the simulated nodes write a log that knows nothing of plan and record; what the record
tells of each task, and the report of each node, must follow from it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import yaml

from applier.run import node_states
from applier.run.node_states import Status
from applier.storage.sql_store import SqlStore
from planner import documents
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import ActionState, PlanState

sys.path.insert(0, str(Path(__file__).parents[1]))
import fuel_tasks

PROGRAM = Path(sys.executable).with_name("actionplan")
PATIENCE_S = 300


class Log:
    """What the drivers wrote: how often each task started and how it ended, and in which order."""

    def __init__(self, file: Path) -> None:
        self.lines = [line.split()[1:] for line in file.read_text().splitlines()]
        named = [(what, f"{node}/{task}") for what, node, task in self.lines]
        self.starts = Counter(name for what, name in named if what == "start")
        self.ends = {name: what for what, name in named if what != "start"}
        self.began = {name: i for i, (what, name) in enumerate(named) if what == "start"}
        self.ended = {name: i for i, (what, name) in enumerate(named) if what != "start"}

    def busy(self) -> Iterator[str]:
        """Say where two tasks ran on one node at once."""
        running: dict[str, str] = {}
        for what, node, task in self.lines:
            if what != "start":
                running.pop(node, None)
            elif node in running:
                yield f"{node} ran {task} beside {running[node]}"
            else:
                running[node] = task


def deploy(tasks: list[dict[str, object]], folder: Path, seed: int, share: float) -> ActionPlan:
    """Apply the deployment with the program, as an operator does; gives what is on record."""
    nodes = fuel_tasks.nodes(tasks, 97)
    document = {"kind": "deployment", "names": "exact", "tasks": tasks, "nodes": nodes}
    file, record = folder / "deployment.yaml", folder / "record.sqlite"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    with (folder / "said").open("w") as said:
        ended = subprocess.run(
            [PROGRAM, "apply", file, "--yes", "--set", "max_workers=16"],
            stdout=said,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
            check=False,
            env={
                "HOME": str(folder),
                "PATH": os.defpath,
                "OS_ACTIONPLAN__CONNECTION": f"sqlite:///{record}",
                "OS_SIMULATED_NODES__FAILURES": str(share),
                "OS_SIMULATED_NODES__SEED": str(seed),
                "OS_SIMULATED_NODES__LOG": str(folder / "log"),
            },
        )
    if ended.returncode not in (0, 3):
        raise SystemExit(f"apply ended with {ended.returncode}: {(folder / 'said').read_text()}")
    with closing(SqlStore(f"sqlite:///{record}")) as store:
        return store.load_plan(store.find_plan("last"))


def problems(plan: ActionPlan, log: Log) -> Iterator[str]:
    """Say where record and report differ from what the drivers wrote."""
    yield from log.busy()
    named = {action.uuid: action for action in plan.actions}
    told = {ActionState.SUCCEEDED: "changed", ActionState.FAILED: "failed"}
    known = set()
    for action in plan.actions:
        if action.action_type in (JOIN, "anchor", "skipped"):
            continue
        known.add(action.label)
        if log.ends.get(action.label) != told.get(action.state):
            yield f"{action.label} is {action.state}, the log says {log.ends.get(action.label)}"
        if log.starts[action.label] != action.attempts:
            starts = log.starts[action.label]
            yield f"{action.label} started {starts} times, {action.attempts} are on record"
        for need in action.needs:
            before = named[need].label
            if (
                before in log.ended
                and log.began.get(action.label, len(log.lines)) < (log.ended[before])
            ):
                yield f"{action.label} began before the end of {before}"
            if action.label in log.began and log.ends.get(before, "changed") == "failed":
                yield f"{action.label} ran, and {before}, which it needs, had failed"
    yield from (f"{name} ran and is not in the plan" for name in log.ends if name not in known)
    yield from wrong_reports(plan, log)


def wrong_reports(plan: ActionPlan, log: Log) -> Iterator[str]:
    """Say which node, or whether the whole, is reported as something else than the log shows."""
    tasks: dict[str, list[str]] = {}
    for action in plan.actions:
        node = node_states.node_of(action)
        if node is not None and action.action_type != "skipped":
            tasks.setdefault(node, []).append(action.label)
    found = node_states.report(plan)
    for node in found.nodes:
        ends = [log.ends.get(name) for name in tasks.get(node.uid, ())]
        ready = all(end == "changed" for end in ends)
        if (node.status is Status.READY) != ready:
            yield f"node {node.uid} is told to be {node.status}, and its tasks ended {ends}"
        if "failed" in ends and node.status is not Status.ERROR:
            yield f"a task of node {node.uid} failed, and it is told to be {node.status}"
    whole = all(log.ends.get(name) == "changed" for names in tasks.values() for name in names)
    if (found.status is Status.READY) != whole or (plan.state is PlanState.SUCCEEDED) != whole:
        yield f"the deployment is told to be {found.status} ({plan.state})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Deploy as often as wanted; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="?", type=Path, help="generated where left out")
    parser.add_argument("--times", type=int, default=10, help="how often")
    parser.add_argument("--failing", type=float, default=0.01, help="share of tasks that fail")
    given = parser.parse_args(arguments)
    tasks = documents.read(given.tasks).value if given.tasks else fuel_tasks.generated()
    wrong = 0
    for seed in range(1, given.times + 1):
        with tempfile.TemporaryDirectory() as folder:
            plan = deploy(tasks, Path(folder), seed, given.failing)
            log = Log(Path(folder) / "log")
            found = list(problems(plan, log))
        nodes = Counter(str(node.status) for node in node_states.report(plan).nodes)
        ends = Counter(log.ends.values())
        told = ", ".join(f"{number} {status}" for status, number in sorted(nodes.items()))
        print(
            f"seed {seed}: {ends['changed']} tasks done, {ends['failed']} failed; {told}; plan "
            f"{plan.state}; {len(found)} problems",
            *found[:5],
            sep="\n  ",
        )
        wrong += len(found)
    print(f"{given.times} deployments, {wrong} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
