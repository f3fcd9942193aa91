# SPDX-License-Identifier: Apache-2.0
"""Resumes plans that were paused or failed, and plans whose applier has died."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from applier.contracts import Claimant, HistoryEntry, Report, Request
from applier.errors import PlanConflict
from applier.run import liveness
from applier.scheduling.interrupted import was_cut_off
from planner.errors import short
from planner.plan.graph import order_graph
from planner.plan.guarantees import awaits_a_look
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, PlanState, StateReason

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore


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
#: The reason why a plan in one of these states cannot be resumed, unless a rollback undid actions
#: of it.
REFUSED = {
    PlanState.RECOMMENDED: "it has not been started yet: start it",
    PlanState.PENDING: "it waits for an applier already",
    PlanState.SUCCEEDED: "nothing of it is left to do",
    PlanState.SUPERSEDED: "a newer plan took its place",
    PlanState.DELETED: "it was removed",
}


def to_reset(plan: ActionPlan) -> list[str]:
    """Return the uuids of the actions that become PENDING when a plan is resumed, in plan order.

    These are the actions that did not do their work. An action that was not triggered is included
    if one of its predecessors runs again. An action that an operator skipped is not. If the applier
    of a plan has died, no action is reset, because nobody decided to retry failed actions.
    """
    if plan.state in (PlanState.ONGOING, PlanState.CANCELLING):
        return []
    import networkx as nx

    graph = order_graph(plan)
    back: set[str] = set()
    for node in nx.topological_sort(graph):
        action = graph.nodes[node].get("action")
        if action is None or action.state_reason is StateReason.NOT_TRIGGERED:
            if not back.isdisjoint(graph.predecessors(node)):
                back.add(node)
        elif action.state in _BACK:
            back.add(node)
    return [action.uuid for action in plan.actions if action.uuid in back]


def is_refused(plan: ActionPlan) -> bool:
    """Return whether a plan is in a state in which it cannot be resumed.

    A plan that SUCCEEDED can be resumed after a rollback has undone actions of it.
    """
    undone = plan.state is PlanState.SUCCEEDED and to_reset(plan)
    return plan.state in REFUSED and not undone


def resumable(
    store: SqlStore,
    uuid: str,
    *,
    tell: Callable[[str], None] = lambda _: None,
    wait: Callable[[float], None] = time.sleep,
) -> tuple[ActionPlan, Claimant | None]:
    """Return a plan that can be resumed, and its claimant, which has died, or None.

    The call blocks while a claimant is watched, for up to :data:`liveness.MISSED_HEARTBEATS` of its
    intervals; ``tell`` is called with a sentence about that. Raises PlanConflict if the claimant is
    alive, or if the state of the plan does not allow it.
    """
    claimant = store.claimant(uuid)
    plan = store.load_plan(uuid)
    if is_refused(plan):
        text = f"plan {short(uuid)} is {plan.state}: {REFUSED[plan.state]}"
        raise PlanConflict(uuid, plan.state, text)
    if claimant is not None and not liveness.has_died(store, uuid, claimant, tell=tell, wait=wait):
        raise _not_dead(store, plan, claimant)
    return plan, claimant


def _not_dead(store: SqlStore, plan: ActionPlan, claimant: Claimant) -> PlanConflict:
    """Return the error for a plan whose claimant wrote a heartbeat, or whose claim has ended."""
    found = store.claimant(plan.uuid)
    text = f"plan {short(plan.uuid)} was {plan.state}: its claimant has changed meanwhile"
    if found and (found.host, found.pid) == (claimant.host, claimant.pid):
        text = (
            f"plan {short(plan.uuid)} is {plan.state}: {found.user} runs it on {found.host}, "
            f"process {found.pid}, which was heard of just now; it can be resumed once that one "
            "has paused, ended or died"
        )
    return PlanConflict(plan.uuid, plan.state, text)


def resume(
    store: SqlStore,
    uuid: str,
    *,
    clock: Callable[[], datetime],
    who: str,
    why: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
    wait: Callable[[float], None] = time.sleep,
    history: HistoryEntry | None = None,
    dead: Claimant | None = None,
) -> list[str]:
    """Make a plan PENDING again; return the uuids of the actions that became PENDING with it.

    Blocks and raises as :func:`resumable`, unless that has found a ``dead`` claimant before. Raises
    PlanConflict, too, if somebody else changed the plan meanwhile, or if ``dead`` was heard of.
    """
    if dead is None:
        plan, claimant = resumable(store, uuid, tell=tell, wait=wait)
    else:
        plan, claimant = store.load_plan(uuid), dead
    back = to_reset(plan)
    message = f"resumed by {who}" + (f": {why}" if why else "")
    store.resume_plan(uuid, back, now=clock(), message=message, seen=claimant, history=history)
    return back


def take_over(
    store: SqlStore,
    uuid: str,
    claimant: Claimant,
    *,
    now: datetime,
    who: str,
    end_commands: Callable[[str], Sequence[Report]] = lambda _: (),
) -> PlanState:
    """End the claim of a ``claimant`` that has died, and return the new state of its plan.

    A plan that was being cancelled becomes CANCELLED. A cancel or pause that was requested, and
    that the claimant did not carry out, is carried out. Before a plan becomes CANCELLED,
    ``end_commands`` is called with its uuid; it ends the commands that still run, and returns a
    report for each action that was running. Without a report, such an action becomes UNKNOWN.
    Otherwise the plan becomes PENDING. But if an action was interrupted :data:`DEATHS` times in a
    row, it may be the reason why appliers die: then the plan becomes PAUSED for an operator, as
    after the first nodes of a rollout that has a canary. Raises PlanConflict if somebody else
    changed the plan meanwhile, or if the claimant wrote a heartbeat.
    """
    plan = store.load_plan(uuid)
    message = f"{liveness.gone(claimant)}; %s by {who}"

    def end(new: PlanState, verb: str, why: str, reports: Sequence[Report] = ()) -> None:
        entry = HistoryEntry(verb=verb, who=who, at=now, why=why)
        store.move_plan(
            uuid, new, now=now, message=why, seen=claimant, reports=reports, history=entry
        )

    if plan.state is PlanState.CANCELLING:
        reports = end_commands(uuid)
        new, message = PlanState.CANCELLED, message % "its cancel was finished"
        end(new, "cancel", message, reports)
        return new
    request = _not_followed(store, plan, claimant)
    if request is not None:
        new = PlanState.CANCELLED if request.cancels else PlanState.PAUSED
        reports = end_commands(uuid) if new is PlanState.CANCELLED else ()
        what = f"{request.verb}, requested by {request.who}, was carried out"
        message %= what
        end(new, request.verb, message, reports)
        return new
    deadly = _deadly(store, plan)
    if deadly is not None:
        what = f"{deadly.label} was interrupted {DEATHS} times in a row, so the plan was paused"
        end(PlanState.PAUSED, "pause", message % what)
        return PlanState.PAUSED
    look = awaits_a_look(plan)
    if look is not None:
        end(PlanState.PAUSED, "pause", message % f"paused, because {look}")
        return PlanState.PAUSED
    message %= "resumed"
    entry = HistoryEntry(verb="resume", who=who, at=now, why=message)
    store.resume_plan(uuid, [], now=now, message=message, seen=claimant, history=entry)
    return PlanState.PENDING


def _not_followed(store: SqlStore, plan: ActionPlan, claimant: Claimant) -> Request | None:
    """Return the first cancel, else the first pause, that the claimant has not carried out.

    A claimant that carries one out changes the state of the plan; so these are all requests that
    were made under its claim.
    """
    found = store.requests(plan.uuid, claimant.requests_before)
    asked = [request for request in found if request.cancels or request.pauses]
    return max(asked, key=lambda request: request.cancels, default=None)


def _deadly(store: SqlStore, plan: ActionPlan) -> Action | None:
    for action in plan.actions:
        if action.state is ActionState.ONGOING and action.attempts >= DEATHS:
            last = store.attempts(plan.uuid, action.uuid)[-DEATHS:]
            if all(was_cut_off([attempt]) for attempt in last):
                return action
    return None
