# SPDX-License-Identifier: Apache-2.0
"""Rolls out and deploys over simulated nodes, and kills, pauses and narrows it until it has ended.

``python tests/campaign/rollouts.py [--seconds S] [--seed N]``. The drivers of the simulated nodes
write a log that knows nothing of plan and record. By it never more nodes than the rollout allows
are between their first begin and the end of their last step, whatever happens to the appliers; and
after a pause no node is half done.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml

from applier.storage.sql_store import SqlStore
from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, PlanState

PROGRAM = Path(sys.executable).with_name("actionplan")
PATIENCE_S = 120
#: How often a plan is stopped or resumed before it may run to its end, and by what.
MOST = 8
TROUBLES = ("kill", "kill", "pause", "limit", "second", "skip")


class Rollout:
    """One plan, and the folder with its record and the log of its nodes."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder, self._chance = folder, chance
        self.nodes = [f"n{i}" for i in range(chance.randint(4, 16))]
        self.serial, self.keep = chance.randint(1, 4), chance.random() < 0.7
        self.steps = chance.randint(2, 4)
        self.failing = chance.choice([0.0, 0.05])
        self.troubles: Counter[str] = Counter()
        #: Nodes whose last step was skipped: they are done without it.
        self.skipped: set[str] = set()
        duration_s = round(chance.uniform(0.02, 0.15), 2)
        document = chance.choice([self._rollout, self._deployment])(duration_s)
        (folder / "rollout.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        self._record = f"sqlite:///{folder}/record.sqlite"
        self.run("create", "rollout.yaml")

    def _rollout(self, duration_s: float) -> dict[str, Any]:
        step = {"command": "true", "duration_s": duration_s}
        return {
            "kind": "rollout",
            "name": "p",
            "nodes": self.nodes,
            "serial": self.serial,
            "keep": self.keep,
            "steps": [{"name": f"s{k}", "shell": step} for k in range(self.steps)],
        }

    def _deployment(self, duration_s: float) -> dict[str, Any]:
        tasks = [f"s{k}" for k in range(self.steps)]
        task = {"type": "shell", "version": 2, "role": "x", "parameters": {"cmd": "true"}}
        return {
            "kind": "deployment",
            "name": "p",
            "nodes": [{"uid": node, "roles": "x"} for node in self.nodes],
            "serial": [{"name": "p", "nodes": self.serial, "keep": self.keep}],
            "durations": dict.fromkeys(tasks, duration_s),
            "tasks": [
                {"id": name, "requires": [before] if before else [], **task}
                for before, name in zip(["", *tasks], tasks, strict=False)
            ],
        }

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start the program as an operator does."""
        with (self._folder / "said").open("a") as said:
            return subprocess.Popen(
                [PROGRAM, *words],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={
                    "HOME": str(self._folder),
                    "PATH": os.defpath,
                    "OS_ACTIONPLAN__CONNECTION": self._record,
                    "OS_ACTIONPLAN__SIMULATOR_SPEED": "1",
                    "OS_SIMULATED_NODES__FAILURES": str(self.failing),
                    "OS_SIMULATED_NODES__SEED": str(self._chance.randrange(1000)),
                    "OS_SIMULATED_NODES__LOG": str(self._folder / "log"),
                },
            )

    def run(self, *words: str) -> int:
        """Run the program to its end; return its exit code."""
        return self.start(*words).wait(PATIENCE_S)

    def plan(self) -> ActionPlan:
        """Return the plan as it is on record."""
        with closing(SqlStore(self._record)) as store:
            return store.load_plan(store.find_plan("last"))

    def go_on(self, *, undisturbed: bool) -> Iterator[str]:
        """Apply the plan, stop that at a random moment unless undisturbed; yield what is wrong."""
        stopped = (PlanState.ONGOING, PlanState.PAUSED, PlanState.FAILED, PlanState.CANCELLED)
        if self.plan().state in stopped:
            self.run("resume", "last")
        before = self._events()
        applier = self.start("apply", "last", "--yes")
        trouble = "none" if undisturbed else self._chance.choice(TROUBLES)
        if trouble != "none":
            try:
                applier.wait(self._chance.uniform(0.5, 2.5))
            except subprocess.TimeoutExpired:
                self.troubles[trouble] += 1
                yield from self._disturb(applier, trouble)
        applier.wait(PATIENCE_S)
        yield from self._too_many(len(before))

    def _disturb(self, applier: subprocess.Popen[bytes], trouble: str) -> Iterator[str]:
        if trouble == "kill":
            applier.send_signal(signal.SIGKILL)
        elif trouble == "limit":
            self.run("set", "last", "--limit", f"serial:p={self.serial}")
        elif trouble == "second":
            if self.run("apply", "last", "--yes") == 0 and applier.poll() is None:
                yield "a second applier ran the plan beside the first"
        elif trouble == "skip":
            node = self._chance.choice(self.nodes)
            if (
                self.run("action", "skip", "last", f"{node}/s{self.steps - 1}", "--reason", "trial")
                == 0
            ):
                self.skipped.add(node)
        elif self.run("stop", "last", "--pause") == 0:
            applier.wait(PATIENCE_S)
            plan = self.plan()
            if plan.state is PlanState.PAUSED:
                yield from self._half_done(plan)

    def _half_done(self, plan: ActionPlan) -> Iterator[str]:
        states: dict[str, set[ActionState]] = {}
        for action in plan.actions:
            states.setdefault(action.places[0].member, set()).add(action.state)
        for node, found in states.items():
            if ActionState.PENDING in found and found != {ActionState.PENDING}:
                yield f"{node} is half done after a pause"

    def _events(self) -> list[list[str]]:
        log = self._folder / "log"
        return [line.split()[1:] for line in log.read_text().splitlines()] if log.exists() else []

    def _too_many(self, since: int) -> Iterator[str]:
        """Yield where more nodes than allowed were between first begin and last end."""
        well: Counter[str] = Counter()
        under_way: dict[str, None] = {}
        failed: set[str] = set()
        for number, (what, node, _) in enumerate(self._events()):
            if what == "start":
                begins = node not in under_way
                under_way[node] = None
                failed.discard(node)
                busy = [n for n in under_way if self.keep or n not in failed]
                if begins and len(busy) > self.serial and number >= since:
                    yield f"{node} begins beside {', '.join(busy)}: {self.serial} are allowed"
            elif what == "changed":
                well[node] += 1
                if well[node] >= self.steps - (node in self.skipped):
                    under_way.pop(node, None)
            else:
                failed.add(node)


def rolled_out(folder: Path, chance: random.Random, end: float) -> tuple[Rollout, list[str]]:
    """Roll out once, with troubles; return what was wrong."""
    rollout, wrong = Rollout(folder, chance), list[str]()
    for number in range(MOST):
        late = number == MOST - 1 or time.monotonic() > end
        rollout.failing = 0.0 if late else rollout.failing
        wrong += rollout.go_on(undisturbed=late)
        if late or rollout.plan().state is PlanState.SUCCEEDED:
            break
    state = rollout.plan().state
    if state is not PlanState.SUCCEEDED:
        wrong.append(f"the plan is {state} in the end")
    return rollout, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Roll out as often as the time allows; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="no new rollout after these")
    parser.add_argument("--seed", type=int, default=1, help="another number makes other troubles")
    given = parser.parse_args(arguments)
    chance, end = random.Random(given.seed), time.monotonic() + given.seconds
    number, found, troubles = 0, list[str](), Counter[str]()
    while time.monotonic() < end:
        number += 1
        with tempfile.TemporaryDirectory() as folder:
            rollout, wrong = rolled_out(Path(folder), chance, end)
            if wrong:
                wrong.append((Path(folder) / "said").read_text()[-2000:])
        found += [f"rollout {number}: {text}" for text in wrong]
        troubles += rollout.troubles
    told = ", ".join(f"{times} x {trouble}" for trouble, times in sorted(troubles.items()))
    print(f"{number} rollouts; {told}; {len(found)} problems", *found, sep="\n")
    return 1 if found or not troubles else 0


if __name__ == "__main__":
    sys.exit(main())
