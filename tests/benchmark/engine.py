"""What the engine costs: ratios to the least that any engine does, measured in one run.

Run it as a program: ``python tests/benchmark/engine.py``. The floor is graphlib's TopologicalSorter
with a ThreadPoolExecutor over the same graph, and actions that do nothing, 4 workers. ``alone`` is
the whole engine, flow, scheduler and recorder, with a store that keeps nothing; ``record`` is the
same with SQLite (WAL, synchronous FULL) in a folder of its own: TMPDIR says on which disk. Runs
alternate, and what is printed are medians.
"""

from __future__ import annotations

import graphlib
import os
import queue
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

from plans import deployment, edges, layers, waiting

from applier.contracts import Claimant, Wish
from applier.engines.taskflow_engine import TaskFlowEngine
from applier.recorder import Recorder
from applier.scheduling.verdict import OnFailure
from applier.storage.sql import SqlStore
from applier.tasks import task_maker
from applier.testing.trials import changed, plugin
from planner.model import ActionPlan
from planner.states import PlanState

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


def floor(plan: ActionPlan) -> float:
    """Run it as the standard library would; gives the seconds."""
    began = time.perf_counter()
    sorter = graphlib.TopologicalSorter({a.uuid: a.before() for a in plan.actions})
    sorter.prepare()
    done: queue.SimpleQueue[str] = queue.SimpleQueue()
    with ThreadPoolExecutor(WORKERS) as executor:
        while sorter.is_active():
            for uuid in sorter.get_ready():
                future = executor.submit(lambda one: one, uuid)
                future.add_done_callback(lambda ended: done.put(ended.result()))
            sorter.done(done.get())
    return time.perf_counter() - began


def run(plan: ActionPlan, store: object, claim: str) -> float:
    """Run it as we do; gives the seconds."""
    began = time.perf_counter()
    recorder = Recorder(store, plan, claim, clock=_clock)
    TaskFlowEngine(max_workers=WORKERS).run(
        plan,
        recorder,
        queue.SimpleQueue(),
        make_task=task_maker(plan.actions, PLUGINS, cloud=lambda: None),
        on_failure=OnFailure.SKIP_DESCENDANTS,
    )
    seconds = time.perf_counter() - began
    left = [state for state in recorder.states.values() if state != "SUCCEEDED"]
    if left:
        raise SystemExit(f"{len(left)} actions did not succeed")
    return seconds


def alone(plan: ActionPlan) -> float:
    """Run it with a store that keeps nothing."""
    return run(_ongoing(plan), NoStore(), "claim")


def record(plan: ActionPlan, counts: list[int]) -> float:
    """Run it with a SQLite record; ``counts`` gets the number of commits."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqlStore(f"sqlite:///{folder}/plans.sqlite")
        try:
            store.save_plan(plan)
            claim = store.claim_plan(plan.uuid, CLAIMANT, now=_clock())
            commit, number = store.commit, [0]

            def counted(*given: object, **more: object) -> None:
                number[0] += 1
                commit(*given, **more)

            store.commit = counted
            seconds = run(store.load_plan(plan.uuid), store, claim)
            counts.append(number[0])
            return seconds
        finally:
            store.close()


def fdatasync_s() -> float:
    """Measure what making 4 KiB durable takes here: the median of 200."""
    with tempfile.NamedTemporaryFile() as file:
        found = []
        for _ in range(200):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            found.append(time.perf_counter() - began)
    return statistics.median(found)


def medians(*runs: Callable[[], float], rounds: int = ROUNDS) -> list[float]:
    """Let the runs alternate; give the median of each."""
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for one, seconds in zip(runs, found, strict=True):
            seconds.append(one())
    return [statistics.median(seconds) for seconds in found]


def compare(name: str, plan: ActionPlan, most: tuple[int, int], rounds: int = ROUNDS) -> None:
    """Print a line for a plan: the floor, alone, and with the record."""
    counts: list[int] = []
    base, ours, kept = medians(
        partial(floor, plan), partial(alone, plan), partial(record, plan, counts), rounds=rounds
    )
    number, sync, commits = len(plan.actions), fdatasync_s(), statistics.median(counts)
    # Above a millisecond each, what the disk takes is not the engine's.
    kept_less = kept - max(0.0, sync - 0.001) * commits
    print(
        f"{name}: {number} actions, {edges(plan)} edges: floor {base * 1e3:.0f} ms; "
        f"alone {ours / base:.1f}x (at most {most[0]}x), {ours / number * 1e6:.0f} us an action; "
        f"with the record {kept_less / base:.1f}x (at most {most[1]}x), "
        f"{kept_less / number * 1e6:.0f} us an action, {commits:.0f} commits, "
        f"fdatasync {sync * 1e3:.2f} ms"
    )


def cancelling(number: int) -> None:
    """Print what it takes to cancel so many actions that wait."""

    def once() -> float:
        events: queue.SimpleQueue[object] = queue.SimpleQueue()
        cancelled = []

        def work(_parameters: object, _context: object, stop: object) -> object:
            cancelled.append(time.perf_counter())
            events.put(Wish(verb="cancel", who="me"))
            stop.wait()
            return changed(None, None, None)

        plan = _ongoing(waiting(number))
        recorder = Recorder(NoStore(), plan, "claim", clock=_clock)
        TaskFlowEngine(max_workers=WORKERS).run(
            plan,
            recorder,
            events,
            make_task=task_maker(plan.actions, {"nop": plugin(work)}, cloud=lambda: None),
            on_failure=OnFailure.SKIP_DESCENDANTS,
        )
        return time.perf_counter() - cancelled[0]

    (seconds,) = medians(once)
    print(f"cancelling {number} waiting actions: {seconds:.3f} s (at most 0.5 s)")


def memory(number: int) -> None:
    """Print how much memory a process has that runs so many actions; run it in one of its own."""
    alone(layers(number))
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    print(f"{number} actions: at most {int(peak.split()[1]) / 1024:.0f} MB (at most 200 MB)")


def _ongoing(plan: ActionPlan) -> ActionPlan:
    return ActionPlan(
        uuid=plan.uuid,
        planner=plan.planner,
        actions=plan.actions,
        limits=plan.limits,
        state=PlanState.ONGOING,
    )


def _clock() -> datetime:
    return datetime.now(UTC)


def main() -> None:
    """Print a line for each figure."""
    if sys.argv[1:] == ["memory"]:
        memory(20_000)
        return
    sizes = [int(size) for size in sys.argv[1:]] or [1000, 5000, 20_000]
    for size in sizes:
        compare("dense layers", layers(size), (4, 12), rounds=3 if size > 5000 else ROUNDS)
    compare("deployment", deployment(), (8, 20), rounds=3)
    cancelling(10_000)
    sys.stdout.flush()
    subprocess.run([sys.executable, __file__, "memory"], check=True)


if __name__ == "__main__":
    main()
