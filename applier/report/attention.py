# SPDX-License-Identifier: Apache-2.0
"""What comes first: progress, what runs, what failed, what needs somebody; of one plan or many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from applier.assembly import Assembly
from applier.operations import approving, services, who_runs
from applier.report.action_rows import numbered
from applier.store import PlanSummary
from applier.timeline.waits import Observed
from applier.wording import duration, seconds_between, told_once
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ENDED_PLAN, OPEN, WELL, ActionState, PlanState

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore

#: The maximum number of actions that are listed as in doubt.
MOST_IN_DOUBT = 5
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


class ProgressBar(NamedTuple):
    """How many actions are in each state: state, how many are to the left of it, and how many."""

    total: int
    parts: Sequence[tuple[str, int, int]]
    words: str


class Button(NamedTuple):
    """A button that sends a request: ``verb`` is the end of its path, ``rule`` who may press it.

    ``kind`` is how it looks: primary, danger, or neither. ``why`` says whether a reason is asked
    for: it must be given, may be given, or none. ``state`` is part of a request to settle.
    """

    verb: str
    label: str
    rule: str
    kind: str = ""
    why: str = "may"
    state: str = ""


class Need(NamedTuple):
    """What waits for a person; ``buttons`` are about the action with the uuid, if there is one."""

    text: str
    uuid: str = ""
    buttons: Sequence[Button] = ()


def for_people(
    parts: Assembly, store: SqlStore | None, plan: ActionPlan
) -> tuple[list[Need], list[Button]]:
    """Return what waits for a person, and the buttons; ``store`` is None if it is not stored."""
    refused = approving.missing(parts, plan) if store else ""
    claimant = store.claimant(plan.uuid) if store and plan.state in who_runs.RUNNING else None
    is_gone = who_runs.is_gone(claimant)
    offered = buttons(plan, needs_approval=bool(refused), is_gone=is_gone)
    return list(needs(parts if store else None, plan, refused, is_gone=is_gone)), offered


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


def running(plan: ActionPlan, found: Observed) -> Iterator[tuple[Action, str, str]]:
    """Yield the actions that run, for how long they have run, and for how long they still will."""
    times = found.times
    for _, action in numbered(plan):
        if action.state is not ActionState.ONGOING or times.now_s is None:
            continue
        start_s, end_s = times.intervals[action.uuid]
        left_s = end_s - times.now_s
        left = f"about {duration(left_s)} left" if left_s >= 1 else "longer than expected"
        yield action, duration(max(0.0, times.now_s - start_s)), left


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


def left(plan: ActionPlan) -> list[list[Action]]:
    """Return the actions that have not ended well, worst states first; none before the plan begins.

    Actions that are PENDING or ONGOING are left out while the plan is queued or runs. Those with
    the same state and message stand together.
    """
    actions = [action for _, action in numbered(plan)]
    if all(action.state is ActionState.PENDING for action in actions):
        return []
    going_on = OPEN if plan.state in _RUNNING else frozenset()
    not_done = [action for action in actions if action.state not in WELL | going_on]
    return told_once(sorted(not_done, key=lambda action: _WORST_FIRST.index(action.state)))


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


def ran_for(plan: PlanSummary, now: datetime) -> str:
    """Return for how long a listed plan has run, or ran; an empty text if it has not begun."""
    until = plan.updated_at if plan.state in (*ENDED_PLAN, PlanState.PAUSED) else now
    return duration(seconds_between(plan.began_at, until)) if plan.began_at else ""


#: Actions in doubt wait for a person if their plan is in one of these states.
_DOUBTFUL = (PlanState.PAUSED, PlanState.FAILED, PlanState.CANCELLED, PlanState.ONGOING)


def waits_for(
    store: SqlStore, plan: PlanSummary, lacks_approvals: Callable[[PlanSummary], bool]
) -> str:
    """Return what a listed plan waits for if that is a person, else an empty text."""
    doubtful = plan.actions.get(ActionState.UNKNOWN) if plan.state in _DOUBTFUL else None
    if plan.damage:
        return "damaged"
    if doubtful:
        return f"{doubtful} in doubt"
    if plan.state in who_runs.RUNNING and who_runs.is_gone(store.claimant(plan.uuid)):
        return "nobody runs it"
    if lacks_approvals(plan):
        return "approval"
    return "paused" if plan.state is PlanState.PAUSED else ""
