# SPDX-License-Identifier: Apache-2.0
"""The protocol of claims holds in every interleaving, and faults that are planted are found."""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from math import inf
from types import SimpleNamespace
from unittest import mock

import pytest
from explorer import Scene, Violation
from scenes import SCENES, explored

from applier.engines.recorder import Recorder
from applier.errors import PlanConflict
from applier.operations import services
from applier.run import liveness
from applier.service import plan_loop
from applier.storage import state_refusals, statements
from planner.plan.states import PlanState

pytestmark = pytest.mark.slow
#: How many steps are explored here. ``python tests/protocol/scenes.py`` explores more.
DEPTH = 7


@pytest.fixture(autouse=True)
def quiet():
    """Log nothing: each state would be told of."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("scene", SCENES)
def test_what_must_hold_holds_in_every_interleaving(scene):
    assert explored(scene, depth=DEPTH) > 50


def by_the_clock_of_this_host(_store, _plan, claimant, *, clock=None, **_):
    """Tell who is dead by comparing clocks, as is wrong."""
    age = Scene.current.now() - claimant.heartbeat_at
    return age > timedelta(seconds=1)


def state_first(uuid, state, found, seen, *, right=state_refusals.require_seen):
    """Refuse a resume for the state of its plan, before the claimant is looked at."""
    state_refusals.require_resumable(uuid, PlanState(state), ())
    right(uuid, state, found, seen)


def reads_twice(_plan, _service, **_given):
    """Read the services once more than their number was read."""
    yield str(services.present(SimpleNamespace(store=Scene.current))[0])


#: A commit that does not look at the claim.
ANY_CLAIM = """
    UPDATE actionplan_plan SET updated_at = :now, heartbeat_at = :now, last_write = :write
    WHERE uuid = :plan_uuid"""


def without_asking(recorder, new, message, wait=time.sleep, *, read=None, right=Recorder.move):
    """End a claim whatever was requested meanwhile."""
    right(recorder, new, message, wait)


FAULTS = {
    "a request between the last look and the hand-back is lost": (
        "pause, and an applier that hands back",
        lambda: [mock.patch.object(Recorder, "move", without_asking)],
        "left the plan PENDING, and a request to pause",
    ),
    "a heartbeat is compared with the clock of this host": (
        "resume, with clocks apart",
        lambda: [mock.patch.object(liveness, "has_died", by_the_clock_of_this_host)],
        "ended the claim of one that was heard of",
    ),
    "an interval is the same for all": (
        "a long interval",
        lambda: [
            mock.patch.object(
                liveness.SilenceWatch,
                "is_dead",
                lambda watch, plan, claimant, right=liveness.SilenceWatch.is_dead: right(
                    watch,
                    plan,
                    liveness.Claimant(
                        host=claimant.host,
                        pid=claimant.pid,
                        user="u",
                        heartbeat_at=claimant.heartbeat_at,
                        heartbeat_interval_s=1.0,
                    ),
                ),
            )
        ],
        "whose interval is 2.0 s",
    ),
    "the loser of two services dies of InvalidTransition": (
        "two services and a frozen applier",
        lambda: [
            mock.patch.object(state_refusals, "require_seen", state_first),
            mock.patch.object(plan_loop, "InvalidTransition", PlanConflict),
        ],
        "ended by InvalidTransition",
    ),
    "start reads the services twice": (
        "start, while a service comes and goes",
        lambda: [mock.patch.object(services, "pending_lines", reads_twice)],
        "ended by IndexError",
    ),
    "a plan is taken from one that was heard of since": (
        "resume and a service",
        lambda: [mock.patch.object(state_refusals, "require_seen", return_value=None)],
        "ended the claim of one that was heard of",
    ),
    "a commit does not check the claim": (
        "resume and a service",
        lambda: [mock.patch.object(statements, "HOLD_CLAIM", ANY_CLAIM)],
        "wrote under a claim that was lost",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_is_planted_is_found(fault):
    scene, patches, told = FAULTS[fault]
    planted = patches()
    for patch in planted:
        patch.start()
    try:
        with pytest.raises(Violation, match=told):
            explored(scene, depth=inf)
    finally:
        for patch in planted:
            patch.stop()
