# SPDX-License-Identifier: Apache-2.0
"""Remove plans (mark them DELETED), restore them, and delete them for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime

from applier.assembly import Assembly, now
from applier.errors import PlanConflict
from applier.operations import Operator, refusals, who_runs
from applier.store.entries import EndedPlan
from applier.wording import count
from planner.plan.model import ActionPlan
from planner.plan.states import PlanState

#: How many plans, and about how many actions, one transaction deletes.
PLANS_AT_ONCE, ACTIONS_AT_ONCE = 100, 1000


def require_deletable(assembly: Assembly, plan: ActionPlan) -> None:
    """Raise PlanConflict for a plan that waits, runs, pauses or is DELETED."""
    state, short = plan.state, plan.uuid[:8]
    if state in (*who_runs.RUNNING, PlanState.PENDING, PlanState.PAUSED):
        who = who_runs.headline(assembly.store, plan)
        text = f"plan {short} is {state}: cancel it first (actionplan stop {short} --cancel)"
        raise PlanConflict(plan.uuid, state, f"{text}. {who}" if who else text)
    if state is PlanState.DELETED:
        raise refusals.wrong_state(plan)


def delete(assembly: Assembly, operator: Operator, plan: ActionPlan) -> None:
    """Mark a plan DELETED; raises PlanConflict if it runs, waits, is PAUSED, or is DELETED."""
    require_deletable(assembly, plan)
    message, deleted = f"removed by {operator.name}", operator.entry("delete")
    store = assembly.store
    store.move_plan(plan.uuid, PlanState.DELETED, now=now(), message=message, history=deleted)
    operator.say(f"{who_runs.named(plan)} is DELETED.")
    operator.say(f"To bring it back: actionplan undelete {plan.uuid}")


def undelete(assembly: Assembly, operator: Operator, plan: ActionPlan, why: str | None) -> None:
    """Restore the state of a removed plan; raises PlanConflict if it is not DELETED."""
    entry = operator.entry("undelete", why)
    state = assembly.store.undelete_plan(plan.uuid, now=now(), history=entry)
    operator.say(f"{who_runs.named(plan)} is {state} again.")


#: Is called with the uuid of a plan right before it is deleted; returns whether it may be.
Keep = Callable[[str], bool]


def purge(
    assembly: Assembly,
    operator: Operator,
    before: datetime,
    keep: Keep = lambda _: True,
    most: int | None = None,
) -> bool:
    """Delete for good the plans that ended, or were removed, before a time.

    Each transaction deletes a bounded number of plans, each plan as a whole: after a crash, the
    others are unchanged. What commands of the deleted plans have left on this machine is removed as
    well. If ``keep`` raises an error, nothing more is deleted, and the error is raised; the
    operator gets the number of deleted plans in any case. No transaction begins once ``most`` plans
    are deleted: then False is returned, else True.
    """
    store, purged, is_whole = assembly.store, 0, False
    entry = operator.entry("purge", f"ended before {before:%Y-%m-%d %H:%M} UTC")
    with closing(assembly.machines()) as machines:
        jobs = machines.listed(None)
        of_plans = {a.plan for job in jobs if (a := job.attempt)}
        gone: set[str] = set()
        try:
            for part in _parts(assembly, before):
                if most is not None and purged >= most:
                    break
                some = [uuid for uuid in part if keep(uuid)]
                deleted = store.purge_plans(some, before, history=None if purged else entry)
                purged += len(deleted)
                gone |= of_plans.intersection(deleted)
            else:
                is_whole = True
        finally:
            operator.say(f"{count(purged, 'plan')} deleted for good.")
            left = [
                job.folder
                for job in jobs
                if (a := job.attempt) and a.plan in gone and not job.is_running
            ]
            machines.remove(None, left, wait=True)
            if left:
                text = f"{count(len(left), 'leftover')} of commands removed from this machine."
                operator.say(text)
    return is_whole


def _parts(assembly: Assembly, before: datetime) -> Iterator[list[str]]:
    """Yield the uuids that one transaction deletes, each part listed when it is needed."""
    after = 0
    while found := assembly.store.ended_plans(before, after=after, limit=PLANS_AT_ONCE):
        part: list[EndedPlan] = []
        for plan in found:
            if part and sum(p.actions for p in part) + plan.actions > ACTIONS_AT_ONCE:
                break
            part.append(plan)
        after = part[-1].number
        yield [plan.uuid for plan in part]
