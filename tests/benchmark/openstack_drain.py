# SPDX-License-Identifier: Apache-2.0
"""Two hosts of a real Nova are emptied, ten at a time: the makespan beside its forecast.

    .venv/bin/python tests/benchmark/openstack_drain.py [INSTANCES [SECONDS]]

INSTANCES (40) are moved live, each for SECONDS (2) in the fake hypervisor. The forecast is made of
the median duration of the first ten moves. The requests are those that Nova has answered.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / name) for name in ("openstack", "watcher", ".")]

import environments
from nova_lab import NovaLab

from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Ranking
from applier.storage.sql_store import SqlStore
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState

PROGRAM = Path(sys.executable).with_name("actionplan")
AT_ONCE = 10
LEFT = ("cmp1", "cmp2")
SIZE = {"LAB_RAM": "262144", "LAB_VCPUS": "64", "LAB_DISK": "4000"}
CONFIGURATION = """\
[actionplan]
cloud = openstack
connection = {record}

[openstack]
cloud = lab

[watcher_workflow_engines.taskflow]
max_workers = {at_once}
"""
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/)\d+(?=[/ ?]|$)|\?.*")


def main(count: int, seconds: float) -> None:
    """Boot the instances, empty the hosts, and print the figures."""
    environments.make(environments.NOVA)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "nova").mkdir()
        with NovaLab(folder / "nova", 4, **SIZE) as lab:
            for i in range(count):
                lab.boot(f"web-{i:03}", LEFT[i % len(LEFT)], lab_lm_seconds=str(seconds))
            plan, requests = drained(lab, folder)
    tell(plan, requests)


def drained(lab: NovaLab, folder: Path) -> tuple[ActionPlan, list[str]]:
    """Empty the hosts; return the plan as it is on record, and the requests to Nova meanwhile."""
    record = f"sqlite:///{folder}/record.sqlite"
    file = folder / "watcher.conf"
    file.write_text(CONFIGURATION.format(record=record, at_once=AT_ONCE), encoding="utf-8")
    environment = {**os.environ, "OS_CLIENT_CONFIG_FILE": str(lab.clouds_yaml)}
    options = ("--set", f"migrate.parallelization={AT_ONCE}", "--set", "ordering=slots")
    solution = str(folder / "drain.yaml")
    before = 0
    for words in (
        ("drain", *LEFT, "--out", solution),
        ("create", solution, *options),
        ("apply", "last", "--yes"),
    ):
        before = len(lab.requests())
        command = [PROGRAM, "--config-file", file, *words]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    with closing(SqlStore(record)) as store:
        (plan,) = store.list_plans()
        return store.load_plan(plan.uuid), lab.requests()[before:]


def tell(plan: ActionPlan, requests: list[str]) -> None:
    """Print the makespan, the forecast, and the requests."""
    spans = {
        a.uuid: (a.started_at, (a.ended_at - a.started_at).total_seconds())
        for a in plan.actions
        if a.started_at is not None and a.ended_at is not None
    }
    moves = [a.uuid for a in plan.actions if a.action_type == "migrate"]
    first = sorted(moves, key=lambda uuid: spans[uuid][0])[:AT_ONCE]
    each_s = statistics.median(spans[uuid][1] for uuid in first)
    expected = {a.uuid: spans[a.uuid][1] if a.uuid in spans else 0.0 for a in plan.actions}
    expected |= dict.fromkeys(moves, each_s)
    waiting = [replace(action, state=ActionState.PENDING) for action in plan.actions]
    concurrency = Concurrency(limits=plan.limits, max_workers=AT_ONCE)
    forecast_s = Ranking(waiting, expected, concurrency).timeline.makespan_s
    began = min(at for at, _ in spans.values())
    took_s = max((at - began).total_seconds() + s for at, s in spans.values())
    print(f"{len(moves)} moves, {AT_ONCE} at a time; plan {plan.state}")
    print(f"each of the first {len(first)}: {each_s:.1f} s (median)")
    print(f"makespan {took_s:.1f} s, forecast {forecast_s:.1f} s: {took_s / forecast_s:.2f}")
    print(f"{len(requests)} requests, {len(requests) / len(moves):.1f} for each move:")
    for kind, number in Counter(_ID.sub("", r) for r in requests).most_common(10):
        print(f"  {number / len(moves):5.2f}  {kind}")


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["40"])[0]), float((sys.argv[2:] or ["2"])[0]))
