# SPDX-License-Identifier: Apache-2.0
"""Resumes plans that were paused or failed, and plans whose applier has died."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from datetime import datetime

from applier.contracts import Claimant, Request
from applier.errors import PlanConflict
from applier.scheduling.resumption import was_cut_off
from applier.store import Service, Store
from planner.graph_algorithms import topological_order
from planner.model import Action, ActionPlan
from planner.states import ActionState, PlanState, StateReason

#: Actions in one of these states become PENDING again when their plan is resumed.
_BACK = frozenset(
    {
        ActionState.FAILED,
        ActionState.FAILED_DEPENDENCIES,
        ActionState.CANCELLED,
        ActionState.REVERTED,
    }
)
#: After this many interrupted attempts of an action in a row, its plan is PAUSED.
DEATHS = 3
#: The state of a plan after a request that its claimant did not follow before it died.
_ASKED = {"cancel": PlanState.CANCELLED, "pause": PlanState.PAUSED}
#: The reason why a plan in one of these states cannot be resumed, unless a rollback undid actions
#: of it.
REFUSED = {
    PlanState.RECOMMENDED: "it has not been started yet: start it",
    PlanState.PENDING: "it waits for an applier already",
    PlanState.SUCCEEDED: "nothing of it is left to do",
    PlanState.SUPERSEDED: "a newer plan took its place",
    PlanState.DELETED: "it was removed",
}


def is_gone(claimant: Claimant | Service) -> bool:
    """Return whether a claimant or service ran on this host and its process has ended."""
    if claimant.host != socket.gethostname():
        return False
    try:
        os.kill(claimant.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # the process exists, and belongs to another user
    return False


def age_s(claimant: Claimant, now: datetime) -> float:
    """Return the age of a claimant's last heartbeat, in seconds.

    A heartbeat in the future comes from a clock that was changed: its age is 0.
    """
    if claimant.heartbeat_at is None:
        return float("inf")
    return max(0.0, (now - claimant.heartbeat_at).total_seconds())


def alive(claimant: Claimant, now: datetime, *, patience_s: float = 30.0) -> bool:
    """Return whether a claimant is alive: its heartbeat is recent, and its process not gone."""
    return not is_gone(claimant) and age_s(claimant, now) <= patience_s


def to_reset(plan: ActionPlan) -> list[str]:
    """Return the actions that become PENDING when a plan is resumed, in plan order.

    These are the actions that did not do their work. An action that was not triggered is included
    if one of its predecessors runs again. An action that an operator skipped is not. If the applier
    of a plan has died, no action is reset, because nobody decided to retry failed actions.
    """
    if plan.state in (PlanState.ONGOING, PlanState.CANCELLING):
        return []
    position = {action.uuid: i for i, action in enumerate(plan.actions)}
    before = [[tuple(position[u] for u in _before(action))] for action in plan.actions]
    back: set[int] = set()
    for i in topological_order(before):
        action = plan.actions[i]
        if action.state in _BACK or (
            _was_not_set_off(action) and not back.isdisjoint(before[i][0])
        ):
            back.add(i)
    return [plan.actions[i].uuid for i in sorted(back)]


def refused(plan: ActionPlan) -> bool:
    """Return whether a plan is in a state in which it cannot be resumed.

    A plan that SUCCEEDED can be resumed after a rollback has undone actions of it.
    """
    undone = plan.state is PlanState.SUCCEEDED and to_reset(plan)
    return plan.state in REFUSED and not undone


def resume(
    store: Store,
    uuid: str,
    *,
    now: datetime,
    who: str,
    why: str | None = None,
    patience_s: float = 30.0,
) -> list[str]:
    """Make a plan PENDING again; return the actions that became PENDING with it.

    Raises PlanConflict if its claimant is alive, if its state does not allow it, or if somebody
    else changed the plan meanwhile.
    """
    claimant = store.claimant(uuid)
    plan = store.load_plan(uuid)
    if refused(plan):
        text = f"plan {uuid[:8]} is {plan.state}: {REFUSED[plan.state]}"
        raise PlanConflict(uuid, plan.state, text)
    if claimant is not None and alive(claimant, now, patience_s=patience_s):
        text = (
            f"plan {uuid[:8]} is {plan.state}: {claimant.user} runs it on {claimant.host}, process "
            f"{claimant.pid}, last heard of {age_s(claimant, now):.0f} s ago; it can be resumed "
            "once that one has paused, ended or died"
        )
        raise PlanConflict(uuid, plan.state, text)
    back = to_reset(plan)
    message = f"resumed by {who}" + (f": {why}" if why else "")
    store.resume_plan(uuid, back, now=now, message=message, seen=claimant)
    return back


def take_over(
    store: Store,
    uuid: str,
    claimant: Claimant,
    *,
    now: datetime,
    who: str,
    end_commands: Callable[[str], None] = lambda _: None,
) -> PlanState:
    """End the claim of a ``claimant`` that has died, and return the new state of its plan.

    If the plan was being cancelled, it becomes CANCELLED, and its running actions UNKNOWN, after
    ``end_commands`` was called with its uuid, to end what the dead one has left running. A cancel
    or pause that was requested and that the claimant did not follow is carried out. Otherwise the
    plan becomes PENDING. But if an action was interrupted :data:`DEATHS` times in a row, it may be
    what kills the applier: then the plan is PAUSED for an operator. Raises PlanConflict if somebody
    else changed the plan meanwhile, or if the claimant wrote a heartbeat.
    """
    plan = store.load_plan(uuid)
    message = f"{gone(claimant)}; %s by {who}"
    if plan.state is PlanState.CANCELLING:
        end_commands(uuid)
        new, message = PlanState.CANCELLED, message % "its cancel was finished"
        store.move_plan(uuid, new, now=now, message=message, seen=claimant)
        return new
    request = _not_followed(store, plan, claimant)
    if request is not None:
        new = _ASKED[request.verb]
        if new is PlanState.CANCELLED:
            end_commands(uuid)
        what = f"{request.verb}, requested by {request.who}, was carried out"
        store.move_plan(uuid, new, now=now, message=message % what, seen=claimant)
        return new
    deadly = _deadly(store, plan)
    if deadly is not None:
        what = f"{deadly.label} was interrupted {DEATHS} times in a row, so the plan was paused"
        store.move_plan(uuid, PlanState.PAUSED, now=now, message=message % what, seen=claimant)
        return PlanState.PAUSED
    store.resume_plan(uuid, [], now=now, message=message % "resumed", seen=claimant)
    return PlanState.PENDING


def _not_followed(store: Store, plan: ActionPlan, claimant: Claimant) -> Request | None:
    """Return the first cancel, else the first pause, that the claimant has not carried out.

    These are the requests since the start of its oldest running action, or since its last
    heartbeat, whichever is earlier.
    """
    times = [a.started_at for a in plan.actions if a.state is ActionState.ONGOING]
    since = min((t for t in (*times, claimant.heartbeat_at) if t is not None), default=None)
    asked = [
        request
        for request in store.requests(plan.uuid)
        if request.verb in _ASKED and since and request.created_at and request.created_at >= since
    ]
    return min(asked, key=lambda request: request.verb, default=None)


def gone(claimant: Claimant) -> str:
    """Return the beginning of the message about a claimant that has died."""
    return f"process {claimant.pid} on {claimant.host}, which ran it, is gone"


def _deadly(store: Store, plan: ActionPlan) -> Action | None:
    for action in plan.actions:
        if action.state is ActionState.ONGOING and action.attempts >= DEATHS:
            last = store.attempts(plan.uuid, action.uuid)[-DEATHS:]
            if all(was_cut_off([attempt]) for attempt in last):
                return action
    return None


def _before(action: Action) -> Iterator[str]:
    yield from action.before()
    for group in action.needs_any:
        yield from group


def _was_not_set_off(action: Action) -> bool:
    return action.state_reason is StateReason.NOT_TRIGGERED
