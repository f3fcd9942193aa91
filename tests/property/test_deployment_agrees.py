# SPDX-License-Identifier: Apache-2.0
"""What is reported of a deployment of simulated nodes agrees with the log of the nodes' own side.

The log is written by what stands in for the tasks, which knows nothing of plan, record and report.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from applier.actions.markers import Anchor, Skipped
from applier.actions.node_commands import Puppet
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.machines import OpenMachines
from applier.machines.simulated_nodes import SimulationSettings
from applier.run import node_states
from applier.run.node_states import Status, Word
from applier.testing.trials import Trial
from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState

PLUGINS = {"puppet": Puppet, "anchor": Anchor, "skipped": Skipped}
TASKS = ("netconfig", "ntp", "database", "api", "agent")


def plan(nodes: int) -> ActionPlan:
    """On each node a chain of tasks; the third needs that of the node before, two stand apart."""
    actions = []
    for n in range(1, nodes + 1):
        for i, name in enumerate(TASKS):
            needs = [f"{n}/{TASKS[i - 1]}"] if 0 < i < 4 else []
            needs += [f"{n - 1}/{name}"] if i == 2 and n % 10 > 1 else []
            actions.append(action(f"{n}/{name}", "puppet", {"node": str(n)}, needs))
        reason = {"reason": "its condition is false"}
        actions.append(action(f"{n}/ceph", "skipped", reason, [f"{n}/{TASKS[3]}"]))
    last = tuple(f"{n}/ceph" for n in range(1, nodes + 1))
    actions.append(Action(uuid="sync/end", name="sync/end", action_type="anchor", parents=last))
    return ActionPlan(
        uuid="plan",
        planner=node_states.PLANNER,
        actions=tuple(actions),
        limits={"node:*": 1},
        state=PlanState.PENDING,
    )


def action(name: str, kind: str, given: dict[str, str], needs: list[str]) -> Action:
    tokens = (f"node:{given['node']}",) if "node" in given else ()
    return Action(
        uuid=name,
        name=name,
        action_type=kind,
        input_parameters=given,
        needs=tuple(needs),
        tokens=tokens,
    )


def logged(log: Path) -> dict[str, Counter[str]]:
    """Count by node what the log says; whatever started has ended."""
    found: dict[str, Counter[str]] = {}
    for line in log.read_text().splitlines():
        _, what, node, _ = line.split()
        found.setdefault(node, Counter())[what] += 1
    for counts in found.values():
        assert counts["start"] == counts["changed"] + counts["failed"]
    return found


@pytest.mark.parametrize("seed", range(10))
def test_each_report_agrees_with_the_log_of_the_nodes(seed, tmp_path):
    made, log = plan(100), tmp_path / "log"
    settings = SimulationSettings(failures=("0.01",), seed=seed, log=str(log))
    machines = OpenMachines(simulation=settings)
    with Trial(
        made, TaskFlowEngine(max_workers=20), max_workers=20, plugins=PLUGINS, machines=machines
    ) as trial:
        state = trial.run()
        found, log_of = node_states.report(trial.plan()), logged(log)
    assert len(found.nodes) == 100
    for node in found.nodes:
        expected = log_of[node.uid]
        assert node.counts[Word.SUCCESS] == expected["changed"], node
        assert node.counts[Word.ERROR] == expected["failed"], node
        not_run = len(TASKS) + 1 - expected["start"] - node.counts[Word.SKIPPED]
        assert node.counts[Word.FAILED_DEPENDENCIES] == not_run, node
        is_whole = expected["changed"] == len(TASKS) and node.counts[Word.SKIPPED] == 1
        assert (node.status is Status.READY) == is_whole, node
    failed = sum(counts["failed"] for counts in log_of.values())
    assert (found.status is Status.READY) == (failed == 0) == (state is PlanState.SUCCEEDED)
