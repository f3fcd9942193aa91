"""What the engine costs: a ratio to the least that any engine does, both measured in one run.

Run it as a program: ``python tests/benchmark/engine.py``. The floor is graphlib's TopologicalSorter
with a ThreadPoolExecutor over the same graph: dense layers of 20 actions that do nothing, 4
workers. ``alone`` is the whole engine, flow, scheduler and recorder, with a store that keeps
nothing.
"""

from __future__ import annotations

import graphlib
import queue
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from taskflow import engines

from applier import flow
from applier.recorder import Recorder
from applier.scheduling import order
from applier.scheduling.scheduler import Scheduler
from applier.tasks import task_maker
from applier.testing.trials import changed, plugin
from planner.model import Action, ActionPlan
from planner.states import PlanState

WIDTH, WORKERS = 20, 4


def layers(number: int) -> ActionPlan:
    """Dense layers: each action needs all of the layer before."""
    actions: list[Action] = []
    before: tuple[str, ...] = ()
    for start in range(0, number, WIDTH):
        uuids = tuple(f"a{i:035}" for i in range(start, min(start + WIDTH, number)))
        actions += [Action(uuid=u, action_type="nop", parents=before, needs=before) for u in uuids]
        before = uuids
    return ActionPlan(uuid="plan", planner="test", actions=tuple(actions), state=PlanState.ONGOING)


class NoStore:
    """Takes every commit and keeps nothing."""

    def __init__(self) -> None:
        self.commits = 0

    def commit(self, *_given: object, **_more: object) -> None:
        self.commits += 1


def floor(plan: ActionPlan) -> None:
    """Run it as the standard library would."""
    sorter = graphlib.TopologicalSorter({a.uuid: a.parents for a in plan.actions})
    sorter.prepare()
    done: queue.SimpleQueue[str] = queue.SimpleQueue()
    with ThreadPoolExecutor(WORKERS) as executor:
        while sorter.is_active():
            for uuid in sorter.get_ready():
                future = executor.submit(lambda one: one, uuid)
                future.add_done_callback(lambda ended: done.put(ended.result()))
            sorter.done(done.get())


def alone(plan: ActionPlan, *, joins: bool = True) -> None:
    """Run it as we do."""
    store = NoStore()
    recorder = Recorder(store, plan, "claim", clock=lambda: None)
    make_task = task_maker(plan.actions, {"nop": plugin(changed)}, cloud=lambda: None)
    engine = engines.load(
        flow.build(order.links(plan.actions, joins=joins), make_task),
        engine="actionplan",
        schedule=partial(Scheduler, plan.actions, limits={}, max_workers=WORKERS),
        recorder=recorder,
        events=queue.SimpleQueue(),
        max_workers=WORKERS,
    )
    engine.run()
    left = [state for state in recorder.states.values() if state != "SUCCEEDED"]
    if left:
        raise SystemExit(f"{len(left)} actions did not succeed")


def times(run: Callable[[], None], number: int) -> list[float]:
    """Run it some times; give the seconds of each."""
    found = []
    for _ in range(number):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return found


def main() -> None:
    """Print a line for each size."""
    for number in map(int, sys.argv[1:] or (1000, 10_000)):
        plan = layers(number)
        base = min(times(partial(floor, plan), 5))
        ours, dense = times(partial(alone, plan), 5), times(partial(alone, plan, joins=False), 3)
        print(
            f"{number} actions: floor {base * 1e3:.0f} ms; alone {min(ours) * 1e3:.0f} ms "
            f"= {min(ours) / base:.1f}x (median {statistics.median(ours) / base:.1f}x, "
            f"{min(ours) / number * 1e6:.0f} us an action); without joins {min(dense) / base:.1f}x"
        )


if __name__ == "__main__":
    main()
