# SPDX-License-Identifier: Apache-2.0
"""What the engine costs: ratios to the least that any engine does, measured in one run.

Run it as a program: ``python tests/benchmark/engine.py``. The floor is graphlib's TopologicalSorter
with a ThreadPoolExecutor over the same graph, and actions that do nothing, 4 workers. ``alone`` is
the whole engine, flow, scheduler and recorder, with a store that keeps nothing; ``record`` is the
same with SQLite (WAL, synchronous FULL) in a folder of its own: TMPDIR says on which disk. Runs
alternate, and what is printed are medians; a figure that is not met is marked with by how much.
What an action costs in a small and in a large plan is compared in processor time, because other
processes take the wall's.
"""

from __future__ import annotations

import graphlib
import os
import queue
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from plans import deployment, edges, layers, waiting

from applier.contracts import Claimant, Request
from applier.engines.engine import PlanRun
from applier.engines.environment import ActionEnvironment
from applier.engines.recorder import Recorder
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.engines.tasks import task_maker
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.forecast import forecast
from applier.storage.sql_store import SqlStore
from planner.plan.model import ActionPlan
from planner.plan.states import PlanState

sys.path.insert(0, str(Path(__file__).parents[1] / "contract"))
from trials import changed, plugin

WORKERS = 4
ROUNDS = 5
CLAIMANT = Claimant(host="here", pid=1, user="me")
PLUGINS = {"nop": plugin(changed)}


class NoStore:
    """Takes every commit and keeps nothing."""

    commits = 0

    def commit(self, *_given: object, **_more: object) -> None:
        self.commits += 1

    move_claimed = commit


def floor(plan: ActionPlan) -> Took:
    """Run it as the standard library would."""
    began, used = time.perf_counter(), time.process_time()
    sorter = graphlib.TopologicalSorter({a.uuid: a.before() for a in plan.actions})
    sorter.prepare()
    done: queue.SimpleQueue[str] = queue.SimpleQueue()
    with ThreadPoolExecutor(WORKERS) as executor:
        while sorter.is_active():
            for uuid in sorter.get_ready():
                future = executor.submit(lambda one: one, uuid)
                future.add_done_callback(lambda ended: done.put(ended.result()))
            sorter.done(done.get())
    return Took(time.perf_counter() - began, time.process_time() - used)


class Took(NamedTuple):
    """What a run took, in seconds: by the clock on the wall, and of the processor."""

    wall: float
    processor: float


def run(plan: ActionPlan, store: object, claim: str) -> Took:
    """Run it as we do."""
    began, used = time.perf_counter(), time.process_time()
    recorder = Recorder(store, plan, claim, clock=now)
    TaskFlowEngine(max_workers=WORKERS).run(
        PlanRun(
            plan=plan,
            recorder=recorder,
            events=queue.SimpleQueue(),
            make_task=task_maker(
                plan.actions, ActionEnvironment(plugins=PLUGINS, cloud=lambda: None)
            ),
            concurrency=Concurrency(limits=plan.limits, max_workers=WORKERS),
        )
    )
    took = Took(time.perf_counter() - began, time.process_time() - used)
    left = [state for state in recorder.states.values() if state != "SUCCEEDED"]
    if left:
        raise SystemExit(f"{len(left)} actions did not succeed")
    return took


def alone(plan: ActionPlan) -> Took:
    """Run it with a store that keeps nothing."""
    return run(_ongoing(plan), NoStore(), "claim")


def record(plan: ActionPlan, counts: list[tuple[int, float]]) -> Took:
    """Run it with a SQLite record; ``counts`` gets the commits, and what fdatasync takes then."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore(f"sqlite:///{folder}/plans.sqlite")
        try:
            store.save_plan(plan)
            claim = store.claim_plan(plan.uuid, CLAIMANT, now=now())
            commit, number = store.commit, [0]

            def counted(*given: object, **more: object) -> None:
                number[0] += 1
                commit(*given, **more)

            store.commit = counted
            took = run(store.load_plan(plan.uuid), store, claim)
            counts.append((number[0], fdatasync_s()))
            return took
        finally:
            store.close()


def fdatasync_s() -> float:
    """Measure what making 4 KiB durable takes here, now: the median of 50."""
    with tempfile.NamedTemporaryFile() as file:
        found = []
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            found.append(time.perf_counter() - began)
    return statistics.median(found)


def medians(*runs: Callable[[], Took], rounds: int = ROUNDS) -> list[Took]:
    """Let the runs alternate; give the medians of each."""
    found: list[list[Took]] = [[] for _ in runs]
    for _ in range(rounds):
        for one, took in zip(runs, found, strict=True):
            took.append(one())
    return [Took(*map(statistics.median, zip(*took, strict=True))) for took in found]


def limit(found: float, most: float, unit: str) -> str:
    """Say what is allowed, and by how much that is missed, if it is."""
    missed = f", MISSED by {found / most - 1:.0%}" if found > most else ""
    return f"(at most {most:g}{unit}{missed})"


def compare(
    name: str, plan: ActionPlan, most: tuple[int, int], rounds: int = ROUNDS
) -> tuple[float, float]:
    """Print a line for a plan: the floor, alone, and with the record.

    Gives the microseconds of the processor that an action took, alone and with the record.
    """
    counts: list[tuple[int, float]] = []
    base, ours, kept = medians(
        partial(floor, plan), partial(alone, plan), partial(record, plan, counts), rounds=rounds
    )
    number, commits = len(plan.actions), statistics.median(count for count, _ in counts)
    # Above a millisecond each, what the disk takes is not the engine's; the least that was seen,
    # so that a disk that was busy for a moment makes no figure better.
    sync = min(seconds for _, seconds in counts)
    kept_less = kept.wall - max(0.0, sync - 0.001) * commits
    alone_x, kept_x = ours.wall / base.wall, kept_less / base.wall
    each = [took.processor / number * 1e6 for took in (ours, kept)]
    print(
        f"{name}: {number} actions, {edges(plan)} edges: floor {base.wall * 1e3:.0f} ms\n"
        f"  alone {alone_x:.1f}x {limit(alone_x, most[0], 'x')}, {each[0]:.0f} us of a processor "
        f"an action\n"
        f"  with the record {kept_x:.1f}x {limit(kept_x, most[1], 'x')}, {each[1]:.0f} us of a "
        f"processor an action, {commits:.0f} commits, fdatasync {sync * 1e3:.2f} ms"
    )
    return each[0], each[1]


def growth(small: tuple[float, float], large: tuple[float, float]) -> None:
    """Print by how much an action of a large plan costs more than one of a small."""
    alone_x, kept_x = (b / a for a, b in zip(small, large, strict=True))
    print(
        f"an action of the largest costs {alone_x:.2f} of one of the smallest alone "
        f"{limit(alone_x, 1.25, '')}, {kept_x:.2f} with the record {limit(kept_x, 1.25, '')}"
    )


def forecasting(plan: ActionPlan) -> None:
    """Print what a forecast with improved priorities takes, and what that is good for."""
    chance = random.Random(1)
    durations = {a.uuid: chance.uniform(1, 100) for a in plan.actions}
    given = Concurrency(limits=plan.limits, max_workers=50)
    plain = forecast(plan.actions, durations, given, rounds=0).timeline.makespan_s
    used = time.process_time()
    better = forecast(plan.actions, durations, given).timeline.makespan_s
    seconds = time.process_time() - used
    print(
        f"forecast of {len(plan.actions)} actions: {seconds:.2f} s {limit(seconds, 2, ' s')}; "
        f"makespan {better / plain:.3f} of plain longest path first {limit(better / plain, 1, '')}"
    )


def cancelling(number: int) -> None:
    """Print what it takes to cancel so many actions that wait."""

    def once() -> Took:
        events: queue.SimpleQueue[object] = queue.SimpleQueue()
        cancelled = []

        def work(_parameters: object, _context: object, stop: object) -> object:
            cancelled.append(time.perf_counter())
            events.put(Request(verb="cancel", who="me"))
            stop.wait()
            return changed(None, None, None)

        plan = _ongoing(waiting(number))
        recorder = Recorder(NoStore(), plan, "claim", clock=now)
        TaskFlowEngine(max_workers=WORKERS).run(
            PlanRun(
                plan=plan,
                recorder=recorder,
                events=events,
                make_task=task_maker(
                    plan.actions,
                    ActionEnvironment(plugins={"nop": plugin(work)}, cloud=lambda: None),
                ),
                concurrency=Concurrency(limits=plan.limits, max_workers=WORKERS),
            )
        )
        return Took(time.perf_counter() - cancelled[0], 0.0)

    seconds = medians(once)[0].wall
    print(f"cancelling {number} waiting actions: {seconds:.3f} s {limit(seconds, 0.5, ' s')}")


def memory(number: int) -> None:
    """Print how much memory a process has that runs so many actions; run it in one of its own."""
    alone(layers(number))
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    megabytes = int(peak.split()[1]) / 1024
    print(f"{number} actions: {megabytes:.0f} MB {limit(megabytes, 200, ' MB')}")


def _ongoing(plan: ActionPlan) -> ActionPlan:
    return ActionPlan(
        uuid=plan.uuid,
        planner=plan.planner,
        actions=plan.actions,
        limits=plan.limits,
        state=PlanState.ONGOING,
    )


def now() -> datetime:
    return datetime.now(UTC)


def main() -> None:
    """Print a line for each figure."""
    if sys.argv[1:] == ["memory"]:
        memory(20_000)
        return
    sizes = [int(size) for size in sys.argv[1:]] or [1000, 5000, 20_000]
    each = []
    for size in sizes:
        rounds = 3 if size > 5000 else ROUNDS
        each.append(compare("dense layers", layers(size), (4, 8), rounds=rounds))
    growth(each[0], each[-1])
    compare("deployment", deployment(), (8, 10), rounds=3)
    forecasting(deployment())
    cancelling(10_000)
    sys.stdout.flush()
    subprocess.run([sys.executable, __file__, "memory"], check=True)


if __name__ == "__main__":
    main()
