# SPDX-License-Identifier: Apache-2.0
"""The scenes that are explored: who takes part, for how long, and in which state the plan begins.

``python tests/protocol/scenes.py [DEPTH]`` explores all of them, without a depth to their ends.
"""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack, contextmanager
from math import inf
from unittest import mock

from actors import PLAN, applier, coming_and_going, has_a_way_on, operator, service
from explorer import START, Explorer, Scene

from applier.cli import verb
from applier.operations import plans, services
from applier.run import liveness, resume
from applier.service import plan_loop
from planner.plan.model import Action, ActionPlan
from planner.plan.states import PlanState

#: How many heartbeats are missed before a claimant is dead, in place of the product's number.
MISSED = 1

#: By name: the state of the plan, the seconds that pass, and the actors.
SCENES = {
    "two services and a frozen applier": (
        PlanState.PENDING,
        2,
        [applier("a", 1), service("s1", 3), service("s2", 3)],
    ),
    "a long interval": (
        PlanState.PENDING,
        3,
        [applier("a", 1, interval_s=2.0), service("s1", 4)],
    ),
    "resume, with clocks apart": (
        PlanState.PENDING,
        2,
        [
            applier("a", 1, clock_is_ahead_s=-3600.0),
            applier("b", 2),
            operator("resume", clock_is_ahead_s=60.0),
        ],
    ),
    "resume and a service": (
        PlanState.PENDING,
        2,
        [applier("a", 1), operator("resume"), service("s1", 3)],
    ),
    "cancel": (PlanState.PENDING, 0, [applier("a", 1), applier("b", 2), operator("cancel")]),
    "pause, and an applier that hands back": (
        PlanState.PENDING,
        0,
        [applier("a", 1, hands_back=True), applier("b", 2), operator("pause")],
    ),
    "cancel, and an applier that hands back": (
        PlanState.PENDING,
        0,
        [applier("a", 1, hands_back=True), applier("b", 2), operator("cancel")],
    ),
    "start, while a service comes and goes": (
        PlanState.RECOMMENDED,
        0,
        [operator("start"), coming_and_going("s1"), applier("a", 1), operator("cancel")],
    ),
}


def explored(name: str, *, depth: float) -> int:
    """Explore a scene up to a number of steps; return the number of states."""
    state, last_s, actors = SCENES[name]
    with patched():
        return Explorer(
            new_plan(state),
            actors,
            last_s=last_s,
            depth=depth,
            silence=MISSED,
            has_a_way_on=has_a_way_on,
        ).explore()


def new_plan(state: PlanState) -> ActionPlan:
    actions = (Action(uuid="a1", name="a1", action_type="nop"),)
    return ActionPlan(uuid=PLAN, planner="weight", actions=actions, state=state, created_at=START)


class Now:
    """Asks the scene whose actor runs for the time."""

    def __call__(self):
        return Scene.current.now()


def raised_again(*_: object) -> None:
    """Raise the error that is being handled."""
    raise


@contextmanager
def patched():
    """Let the product ask the scene for the time, and wait in it."""
    with ExitStack() as stack:
        enter = stack.enter_context
        enter(mock.patch.object(liveness, "MISSED_HEARTBEATS", MISSED))
        time = {"clock": lambda: Scene.current.time}
        enter(mock.patch.dict(liveness.has_died.__kwdefaults__, time))
        wait = {"wait": lambda seconds: Scene.current.sleep(seconds)}
        for function in (resume.resume, resume.resumable):
            enter(mock.patch.dict(function.__kwdefaults__, wait))
        # A service that meets an unexpected error goes on; here, it ends with it.
        enter(mock.patch.object(plan_loop.LOG, "exception", raised_again))
        for module in (plans, plans, services):
            enter(mock.patch.object(module, "now", Now()))
        enter(mock.patch.object(verb, "user", return_value="ann"))
        yield


if __name__ == "__main__":
    logging.disable()
    depth = float(sys.argv[1]) if sys.argv[1:] else inf
    for scene in SCENES:
        print(f"{scene}: {explored(scene, depth=depth)} states", flush=True)
