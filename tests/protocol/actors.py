# SPDX-License-Identifier: Apache-2.0
"""Who takes part in the protocol: appliers, services and operators, by the code of the product."""

from __future__ import annotations

import io
import threading
from argparse import Namespace
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from explorer import START, Actor, Scene

from applier.cli.steering import ResumePlan, StartPlan, StopPlan
from applier.contracts import Claimant, Report, Verified
from applier.engines.recorder import Recorder
from applier.errors import RequestsUnread
from applier.run import resume
from applier.run.liveness import SilenceWatch
from applier.run.plan_cloud import SIMULATED
from applier.scheduling.decisions import Decisions
from applier.scheduling.interrupted import TO_VERIFY, decide
from applier.service.plan_loop import PlanLoop
from applier.store import Service
from planner.plan.model import ActionPlan
from planner.plan.states import ENDED_PLAN, OPEN, ActionState, Outcome, PlanState

PLAN = "plan"
VERBS = {"cancel": StopPlan, "pause": StopPlan, "resume": ResumePlan, "start": StartPlan}


def run_plan(store: Any, claimant: Claimant, *, hands_back: bool = False) -> PlanState:
    """Claim the plan and run its actions, as runner and engine do; return its state afterwards."""
    heard = len(store.requests(PLAN))
    claim = store.claim_plan(PLAN, claimant, now=store.now())
    plan = store.load_plan(PLAN)
    recorder = Recorder(store, plan, claim, clock=store.now)
    cut_off = [a for a in plan.actions if a.state in TO_VERIFY]
    found = [decide(a, Verified.IN_DOUBT, rerun_safe=False) for a in cut_off]
    recorder.commit(Decisions(ended=[report for report in found if report]))
    for action in plan.actions:
        if recorder.states[action.uuid] is not ActionState.PENDING:
            continue
        while True:
            requests = store.requests(PLAN, heard)
            asked = {request.verb for request in requests}
            if "cancel" in asked:
                return cancel(recorder, plan)
            if "pause" not in asked and not hands_back:
                break
            new = PlanState.PAUSED if "pause" in asked else PlanState.PENDING
            with suppress(RequestsUnread):
                recorder.move(new, None, read=max((r.number for r in requests), default=heard))
                return new
        recorder.commit(Decisions(starts=[action.uuid]))
        store.beat(PLAN, claim, now=store.now())
        recorder.incoming.append(ended(action.uuid, ActionState.SUCCEEDED))
        recorder.commit(Decisions())
    done = all(state is ActionState.SUCCEEDED for state in recorder.states.values())
    recorder.move(PlanState.SUCCEEDED if done else PlanState.FAILED, None)
    return PlanState.SUCCEEDED


def ended(uuid: str, state: ActionState) -> Report:
    return Report(uuid=uuid, old=ActionState.ONGOING, state=state, outcome=Outcome.CHANGED)


def cancel(recorder: Recorder, plan: ActionPlan) -> PlanState:
    """Cancel what has not started, and the plan."""
    left = [a.uuid for a in plan.actions if recorder.states[a.uuid] is ActionState.PENDING]
    old, new = ActionState.PENDING, ActionState.CANCELLED
    ends = [Report(uuid=uuid, old=old, state=new) for uuid in left]
    recorder.commit(Decisions(cancelling="asked", ended=ends))
    recorder.move(PlanState.CANCELLED, None)
    return PlanState.CANCELLED


def applier(name: str, pid: int, *, interval_s: float = 1.0, **options: Any) -> Actor:
    """Return an applier that runs the plan once."""
    me = Claimant(host="elsewhere", pid=pid, user=name, heartbeat_interval_s=interval_s)
    ahead = options.pop("clock_is_ahead_s", 0.0)
    return Actor(name, lambda scene: run_plan(scene, me, **options), clock_is_ahead_s=ahead)


def service(name: str, looks: int) -> Actor:
    """Return a service that looks for plans of dead appliers; it must never end by an error."""

    def run(scene: Scene) -> None:
        made: Any = None
        me = entry(name)
        loop = PlanLoop(scene, made, me, ending=threading.Event(), clock=scene.now)
        loop._silence = SilenceWatch(clock=lambda: scene.time)
        for _ in range(looks):
            loop._take_over()
            scene.sleep(1)

    return Actor(name, run, times_matter=True, may_lose=False)


def coming_and_going(name: str) -> Actor:
    """Return a service that registers and ends."""

    def run(scene: Scene) -> None:
        scene.report_service(entry(name))
        scene.remove_service(name)

    return Actor(name, run, may_lose=False)


def entry(name: str) -> Service:
    """Return the entry of a service."""
    at = {"started_at": START, "heartbeat_at": START}
    return Service(uuid=name, host="elsewhere", pid=9, user=name, cloud=SIMULATED, **at)


def operator(verb: str, **options: Any) -> Actor:
    """Return an operator who uses a verb of the command line once."""

    def run(scene: Scene) -> None:
        cloud = SimpleNamespace(name=SIMULATED)
        session = SimpleNamespace(
            store=scene,
            plugins={},
            cloud=lambda: cloud,
            require_allowed=lambda *_: None,
            plan=lambda _: scene.load_plan(PLAN),
            cloud_needed_by=lambda _: None,
        )
        app = SimpleNamespace(session=session, stdout=io.StringIO(), stderr=io.StringIO())
        words = Namespace(
            plan=PLAN,
            reason=None,
            how=verb,
            abort=None,
            now=False,
            dry_run=False,
            accept_drift=False,
            at=None,
            in_window=False,
        )
        VERBS[verb](app, None).take_action(words)

    return Actor(f"operator who would {verb}", run, times_matter=verb == "resume", **options)


def has_a_way_on(store: Any) -> None:
    """Bring the plan to its end by what services and operators may do once all others are dead."""
    store.now = lambda: START
    for _ in range(6):
        plan, claimant = store.load_plan(PLAN), store.claimant(PLAN)
        if plan.state in ENDED_PLAN:
            assert not [a for a in plan.actions if a.state in OPEN], (
                "an ended plan has open actions"
            )
            return
        if claimant is not None:
            resume.take_over(store, PLAN, claimant, now=START, who="a service")
        elif plan.state is PlanState.PENDING:
            run_plan(store, Claimant(host="elsewhere", pid=99, user="last"))
        elif plan.state is PlanState.RECOMMENDED:
            store.move_plan(PLAN, PlanState.PENDING, now=START)
        else:
            store.resume_plan(PLAN, resume.to_reset(plan), now=START)
    raise AssertionError(f"it is {store.load_plan(PLAN).state} for ever")
