# SPDX-License-Identifier: Apache-2.0
"""What comes first: progress, what runs, what failed, what needs somebody; of one plan or many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from applier.assembly import Assembly
from applier.operations import approving, services, who_runs
from applier.report.action_rows import cut, numbered
from applier.report.values import Button, Left, Listed, Need, ProgressBar, Running, Work
from applier.store import PlanSummary
from applier.timeline.waits import Observed
from applier.wording import duration, named, seconds_between, told_once
from planner.plan.model import ActionPlan
from planner.plan.states import ENDED_PLAN, OPEN, WELL, ActionState, PlanState
from planner.render.look import mark_of

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore

#: The maximum numbers of actions that are listed as running, as not done, and as in doubt.
MOST_RUNNING, MOST_LEFT, MOST_IN_DOUBT = 8, 40, 5
_RUNNING = (PlanState.PENDING, PlanState.ONGOING, PlanState.CANCELLING)
_WORST_FIRST = (
    ActionState.FAILED,
    ActionState.REVERT_FAILED,
    ActionState.UNKNOWN,
    ActionState.ONGOING,
    ActionState.CANCELLED,
    ActionState.FAILED_DEPENDENCIES,
    ActionState.REVERTED,
    ActionState.PENDING,
)
#: The parts of a progress bar, from left to right, and the words for them.
_PARTS = {
    "SUCCEEDED": "done",
    "SKIPPED": "skipped",
    "FAILED": "failed",
    "REVERT_FAILED": "not undone",
    "UNKNOWN": "in doubt",
    "FAILED_DEPENDENCIES": "not run",
    "CANCELLED": "cancelled",
    "REVERTED": "undone",
    "ONGOING": "running",
    "PENDING": "waiting",
}


def work(parts: Assembly, store: SqlStore | None, plan: ActionPlan, found: Observed) -> Work:
    """Return what comes first on the page of a plan; ``store`` is None if it is not stored."""
    runs, not_done = list(running(plan, found)), list(left(plan))
    refused = approving.missing(parts, plan) if store else ""
    claimant = store.claimant(plan.uuid) if store and plan.state in who_runs.RUNNING else None
    is_gone = who_runs.is_gone(claimant)
    return Work(
        progress=progress(Counter(a.state for _, a in numbered(plan))),
        buttons=buttons(plan, needs_approval=bool(refused), is_gone=is_gone),
        needs=list(needs(parts if store else None, plan, refused, is_gone=is_gone)),
        running=runs[:MOST_RUNNING],
        more_running=max(0, len(runs) - MOST_RUNNING),
        left=not_done[:MOST_LEFT],
        more_left=max(0, len(not_done) - MOST_LEFT),
    )


def progress(counts: Mapping[ActionState, int]) -> ProgressBar:
    """Return the progress of a plan from the number of its actions in each state.

    >>> progress({ActionState.FAILED: 1, ActionState.SUCCEEDED: 3, ActionState.PENDING: 4}).words
    '3 of 8 done, 1 failed, 4 waiting'
    """
    total = sum(counts.values())
    parts, at, said = [], 0, [f"{counts.get(ActionState.SUCCEEDED, 0)} of {total} done"]
    for state, word in _PARTS.items():
        if number := counts.get(ActionState(state), 0):
            parts.append((state, at, number))
            at += number
            said += [f"{number} {word}"] if state != "SUCCEEDED" else []
    return ProgressBar(total, parts, ", ".join(said) if total else "no actions")


def running(plan: ActionPlan, found: Observed) -> Iterator[Running]:
    """Yield the actions that run, with how long they have run and are expected to run on."""
    times = found.times
    for number, action in numbered(plan):
        if action.state is not ActionState.ONGOING or times.now_s is None:
            continue
        start_s, end_s = times.intervals[action.uuid]
        left_s = end_s - times.now_s
        yield Running(
            number=number,
            name=action.label,
            since=f"for {duration(max(0.0, times.now_s - start_s))}",
            left=f"about {duration(left_s)} left" if left_s >= 1 else "longer than expected",
        )


def needs(
    parts: Assembly | None, plan: ActionPlan, refused: str, *, is_gone: bool
) -> Iterator[Need]:
    """Yield what waits for a person: an approval, a decision, a look at what is in doubt.

    ``parts`` is None if the plan is not stored. ``refused`` is why it is not approved, ``is_gone``
    whether its applier is.
    """
    doubtful = [a for a in plan.actions if a.state is ActionState.UNKNOWN]
    runs = plan.state in who_runs.RUNNING
    then = "which can be said once nobody runs the plan" if runs else "then say so"
    for action in doubtful[:MOST_IN_DOUBT]:
        yield Need(
            f"{action.label} is in doubt: look whether it was done, {then}.",
            uuid=action.uuid,
            buttons=() if runs else (_SUCCEEDED, _FAILED),
        )
    if len(doubtful) > MOST_IN_DOUBT:
        more = len(doubtful) - MOST_IN_DOUBT
        yield Need(f"{more} more {'is' if more == 1 else 'are'} in doubt.")
    if parts is None:
        return
    if refused:
        # A page has a button for what the sentence says to type.
        said = refused.partition("; to approve it:")[0]
        yield Need(f"{said[0].upper()}{said[1:]}.")
    if plan.state is PlanState.PAUSED:
        yield Need(f"It is paused: {plan.status_message or 'somebody asked for it'}.")
    if is_gone:
        yield Need("Nobody runs it any more: its applier is gone. Resume it.")
    if text := services.waits_in_vain(parts, plan):
        yield Need(text)


def left(plan: ActionPlan) -> Iterator[Left]:
    """Yield the actions that have not ended well, worst states first; none before the plan begins.

    Actions that are PENDING or ONGOING are left out while the plan is queued or runs. What holds
    for several actions is told once.
    """
    actions = numbered(plan)
    if all(action.state is ActionState.PENDING for _, action in actions):
        return
    going_on = OPEN if plan.state in _RUNNING else frozenset()
    number = {action.uuid: i for i, action in actions}
    not_done = [a for _, a in actions if a.state not in WELL | going_on]
    not_done.sort(key=lambda a: _WORST_FIRST.index(a.state))
    for same in told_once(not_done):
        yield Left(
            number[same[0].uuid],
            named(same),
            str(same[0].state),
            cut(same[0].status_message or ""),
        )


_SUCCEEDED = Button("settle", "It succeeded", "steer", why="must", state="SUCCEEDED")
_FAILED = Button("settle", "It failed", "steer", why="must", state="FAILED")
_APPROVE = Button("approve", "Approve", "approve", why="must")
_START = Button("start", "Start", "run", why="none")
_PAUSE = Button("pause", "Pause", "run")
_RESUME = Button("resume", "Resume", "run")
_CANCEL = Button("cancel", "Cancel", "run", kind="danger")
#: The buttons for a plan in each state, the one that most people look for first.
_BUTTONS = {
    PlanState.RECOMMENDED: (_START, _APPROVE),
    PlanState.PENDING: (_CANCEL,),
    PlanState.ONGOING: (_PAUSE, _CANCEL),
    PlanState.PAUSED: (_RESUME, _APPROVE, _CANCEL),
    PlanState.FAILED: (_RESUME, _APPROVE),
    PlanState.CANCELLED: (_RESUME, _APPROVE),
}


def buttons(plan: ActionPlan, *, needs_approval: bool, is_gone: bool) -> list[Button]:
    """Return the buttons for a plan; the first is the primary one, unless it is dangerous.

    ``is_gone`` means that its applier is gone, so that nobody would follow a request to pause it.
    """
    found = [_RESUME, _CANCEL] if is_gone else list(_BUTTONS.get(plan.state, ()))
    if needs_approval:
        found.sort(key=lambda one: one is not _APPROVE)
    if found and not found[0].kind:
        found[0] = found[0]._replace(kind="primary")
    return found


def listed(plan: PlanSummary, now: datetime, needs: str) -> Listed:
    """Return the row of a plan; its state is ``damaged`` if its rows cannot be read."""
    state = str(plan.state) if plan.state else "damaged"
    until = plan.updated_at if plan.state in (*ENDED_PLAN, PlanState.PAUSED) else now
    return Listed(
        uuid=plan.uuid,
        name=plan.name or "",
        state=state,
        mark=mark_of(state),
        progress=progress(plan.actions),
        needs=needs,
        planner=plan.planner,
        made=f"{plan.created_at.astimezone():%Y-%m-%d %H:%M}" if plan.created_at else "",
        took=duration(seconds_between(plan.began_at, until)) if plan.began_at else "",
        creator=plan.creator or "",
    )


#: Actions in doubt wait for a person if their plan is in one of these states.
_DOUBTFUL = (PlanState.PAUSED, PlanState.FAILED, PlanState.CANCELLED, PlanState.ONGOING)


def waits_for(plan: PlanSummary, lacks_approvals: Callable[[PlanSummary], bool]) -> str:
    """Return what a listed plan waits for if that is a person, else an empty text."""
    doubtful = plan.actions.get(ActionState.UNKNOWN) if plan.state in _DOUBTFUL else None
    if plan.damage:
        return "damaged"
    if doubtful:
        return f"{doubtful} in doubt"
    if lacks_approvals(plan):
        return "approval"
    return "paused" if plan.state is PlanState.PAUSED else ""
