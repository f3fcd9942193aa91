# SPDX-License-Identifier: Apache-2.0
"""How long a rollout of N nodes at a time takes, in times of what no order could beat.

Run it: ``python tests/benchmark/rollout.py``. It prints the makespan of simulated rollouts over
their lower bound, beside strict batches of the same nodes, and what places cost the scheduler; it
ends with 1 if a target is missed.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import Course, Ranking
from planner.plan.model import JOIN, Action
from planner.plan.place_rules import HeldPlace, PlaceRule

TOKEN = "serial:nodes"  # noqa: S105
STEPS = 5
SEEDS = 100
#: The median makespan over the bound, and the time of a run with places over one without.
MAKESPAN, COST = 1.10, 2.0


class Scene(NamedTuple):
    """What the durations of a step may differ from what was expected."""

    name: str
    differs: float
    slow: float


SCENES = (
    Scene("durations known within 30 %", 0.3, 0.0),
    Scene("durations known within 50 %", 0.5, 0.0),
    Scene("one step in ten takes 5 x", 0.3, 0.1),
)


def actions(nodes: int) -> list[Action]:
    """Return a chain of steps for each node, whose actions hold one place together."""
    return [
        Action(
            uuid=f"{node}/{step}",
            action_type=f"step-{step}",
            needs=(f"{node}/{step - 1}",) if step else (),
            tokens=(f"node:{node}",),
            places=(HeldPlace(TOKEN, str(node)),),
        )
        for node in range(nodes)
        for step in range(STEPS)
    ]


def batches(given: Sequence[Action], at_once: int) -> list[Action]:
    """Return the same nodes in strict batches: each begins when the one before has ended."""
    made: list[Action] = []
    size = at_once * STEPS
    for first in range(0, len(given), size):
        before = (made[-1].uuid,) if made else ()
        batch = given[first : first + size]
        made += [replace(a, places=(), parents=before if not a.needs else a.parents) for a in batch]
        ends = tuple(a.uuid for a in batch)
        made.append(Action(uuid=f"join-{first}", action_type=JOIN, parents=ends))
    return made


def ratio(given: Sequence[Action], at_once: int, seed: int, scene: Scene, bound: float) -> float:
    """Return the makespan over the bound, with ranks of what was expected."""
    expected, actual = durations(given, seed, scene)
    limits = concurrency(at_once, len(given))
    return (
        Course(given, actual, limits).run(Ranking(given, expected, limits).ranks).makespan_s / bound
    )


def durations(
    given: Sequence[Action], seed: int, scene: Scene
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return the expected and the actual seconds of each action; those of a uuid are the same."""
    expected, actual = {}, {}
    for action in given:
        chance = random.Random(f"{seed} {action.uuid}")
        seconds = 0.0 if action.action_type == JOIN else chance.uniform(10, 300)
        factor = 5.0 if chance.random() < scene.slow else 1.0
        factor *= chance.uniform(1 - scene.differs, 1 + scene.differs)
        expected[action.uuid], actual[action.uuid] = seconds, seconds * factor
    return expected, actual


def concurrency(at_once: int, workers: int) -> Concurrency:
    """Return the limits of a rollout: so many nodes, and each node one step at a time."""
    limits = {TOKEN: at_once, "node:*": 1}
    return Concurrency(limits=limits, max_workers=workers, places={TOKEN: PlaceRule()})


def makespans(scene: Scene) -> tuple[list[float], list[float]]:
    """Return the ratios of all seeds, with places and in strict batches."""
    with_places, in_batches = [], []
    for seed in range(SEEDS):
        chance = random.Random(seed)
        given, at_once = actions(chance.randint(8, 60)), chance.randint(2, 8)
        course = Course(given, durations(given, seed, scene)[1], concurrency(at_once, len(given)))
        bound = course.lower_bound(course.run(course.ranked(course.remaining(course.durations))))
        with_places.append(ratio(given, at_once, seed, scene, bound))
        in_batches.append(ratio(batches(given, at_once), at_once, seed, scene, bound))
    return with_places, in_batches


def cost(nodes: int) -> float:
    """Return how many times as long the scheduler takes with places as without."""
    given = actions(nodes)
    plain = [replace(action, places=()) for action in given]
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(5):
        for placed in (True, False):
            expected, _ = durations(given, 1, SCENES[0])
            limits = concurrency(8, 16)
            limits = limits if placed else replace(limits, places={})
            course = Course(given if placed else plain, expected, limits)
            ranks = course.ranked(course.remaining(course.durations))
            began = time.perf_counter()
            course.run(ranks)
            times[placed].append(time.perf_counter() - began)
    return statistics.median(times[True]) / statistics.median(times[False])


def main() -> int:
    """Measure, print, and return 1 if a target is missed."""
    missed = 0
    print(f"{'makespan over the lower bound':<44} median  worst   batches: median  worst")
    for scene in SCENES:
        with_places, in_batches = makespans(scene)
        median = statistics.median(with_places)
        told = f"{median:6.2f} {max(with_places):6.2f}"
        other = f"{statistics.median(in_batches):15.2f} {max(in_batches):6.2f}"
        print(f"{scene.name:<44} {told} {other}   target: at most {MAKESPAN}")
        missed += median > MAKESPAN
    for nodes in (200, 2000):
        times = cost(nodes)
        text = f"{nodes * STEPS:,} actions: with places, of the time without"
        print(f"{text:<58} {times:6.2f} x   target: at most {COST} x")
        missed += times > COST
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
