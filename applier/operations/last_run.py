# SPDX-License-Identifier: Apache-2.0
"""The last run of a plan: how long it took and should have taken, and what continues the plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from applier.assembly import Assembly
from applier.contracts import MAX_WORKERS
from applier.operations import who_runs
from applier.operations.predictions import makespan_s, past_durations
from applier.run.expected_durations import NOTHING
from applier.store import Attempt, PlanStore, RunStore
from applier.wording import one_line, some
from planner.plan.guarantees import half_done
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState

#: The maximum number of actions in doubt for which a command is suggested.
_MOST_IN_DOUBT = 3
#: The maximum number of nodes that are named as half done.
_MOST_NODES = 10
#: A plan in one of these states has ended, and something of it is left to do.
_OVER = (PlanState.FAILED, PlanState.CANCELLED)
#: The states to look at if a plan failed, the most important first.
_WORST_FIRST = (ActionState.FAILED, ActionState.UNKNOWN, ActionState.CANCELLED)


def taken_s(store: PlanStore, plan: ActionPlan) -> float:
    """Return the seconds of the last run, from its beginning to its last end; 0.0 without one."""
    first = began(store, plan)
    last = max((a.ended_at for a in plan.actions if a.ended_at is not None), default=None)
    return 0.0 if first is None or last is None else max(0.0, (last - first).total_seconds())


def began(store: PlanStore, plan: ActionPlan) -> datetime | None:
    """Return when the last run of a plan began; None if it is not known, or if there was none."""
    if claimant := store.last_claimant(plan.uuid):
        return claimant.claimed_at
    # An imported plan has no claimant; only its history has its runs.
    entries = reversed(store.history(plan.uuid))
    return next((entry.at for entry in entries if entry.verb == who_runs.BEGINS), None)


def attempts_of(store: RunStore, plan: ActionPlan) -> dict[str, list[Attempt]]:
    """Return the attempts of each action that was tried again, or waits for a retry."""
    again = (a for a in plan.actions if a.attempts > (a.started_at is not None))
    return {a.uuid: store.attempts(plan.uuid, a.uuid) for a in again}


def planned_s(assembly: Assembly, plan: ActionPlan) -> float | None:
    """Return the makespan of the last run as it was forecast when that began, in seconds.

    None if the duration of an action was not known then.
    """

    store = assembly.plans
    first = began(store, plan)

    def had_ended(at: datetime | None) -> bool:
        return at is not None and first is not None and at < first

    actions = (a if had_ended(a.ended_at) else fresh(a) for a in plan.actions)
    open_then = replace(plan, actions=tuple(actions))
    durations = past_durations(assembly, first).of(open_then)
    if NOTHING in durations.known_from:
        return None
    workers = who_runs.of_last_run(store, plan).get(MAX_WORKERS, assembly.max_workers)
    return makespan_s(assembly, open_then, durations, workers)


def fresh(action: Action) -> Action:
    """Return an action as if it had not run."""
    return replace(
        action,
        state=ActionState.PENDING,
        outcome=None,
        state_reason=None,
        started_at=None,
        ended_at=None,
        attempts=0,
    )


def next_steps(plan: ActionPlan) -> Iterator[str]:
    """Yield the commands that continue a plan, those for actions in doubt first."""
    short = plan.uuid[:8]
    states = Counter(a.state for a in plan.actions)
    for action in [a for a in plan.actions if a.state is ActionState.UNKNOWN][:_MOST_IN_DOUBT]:
        settle = f"{one_line(action.label)} --state succeeded|failed --reason TEXT"
        yield f"Check, then set its state: actionplan action set {short} {settle}"
    if plan.state in (PlanState.PAUSED, *_OVER) and (nodes := half_done(plan)):
        yield f"Left half done: {some(nodes, _MOST_NODES, ', ')}."
    if plan.state is PlanState.PAUSED:
        again = states[ActionState.FAILED] + states[ActionState.UNKNOWN]
        what = "Run failed actions again, and continue" if again else "Continue"
        yield f"{what}: actionplan apply {short}"
        yield f"Or cancel it: actionplan stop {short} --cancel"
    if plan.state in _OVER:
        ended = [s for s in _WORST_FIRST if states[s]] or [ActionState.FAILED]
        yield f"For details: actionplan action list {short} --state {ended[0]}"
        what = "failed actions again" if states[ActionState.FAILED] else "what is left"
        yield f"Run {what}: actionplan apply {short}"
