# SPDX-License-Identifier: Apache-2.0
"""Messages about who runs a plan, with which limits, and about other commands; retries changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from applier.contracts import MAX_WORKERS, Claimant, Request, RequestVerb
from applier.errors import PlanConflict
from applier.run import liveness, this_process
from applier.store import PlanStore, RunStore
from applier.wording import ago, one_line, run_options
from planner.errors import InvalidTransition
from planner.plan.model import ActionPlan
from planner.plan.states import PlanState

#: The verb in the history of the beginning of a run.
BEGINS = "apply"
#: States of a plan that has a claimant.
RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)


def words(claimant: Claimant | None) -> str:
    """Return the user, host and process of a claimant.

    >>> words(Claimant(host="control-1", pid=4711, user="operator"))
    'operator on control-1, process 4711'
    """
    if claimant is None:
        return "nobody that is known"
    return f"{claimant.user} on {claimant.host}, process {claimant.pid}"


def named(plan: ActionPlan) -> str:
    """Return the beginning of a sentence that identifies a plan by uuid and name."""
    return f"Plan {plan.uuid[:8]}" + (f" ({one_line(plan.name)})" if plan.name else "")


def is_gone(claimant: Claimant | None) -> bool:
    """Return whether a claimant is a process of this host that no longer exists; False for None."""
    return claimant is not None and liveness.is_gone(claimant)


def headline(store: PlanStore, plan: ActionPlan) -> str | None:
    """Return a sentence about who runs a plan; None if nobody does."""
    claimant = store.claimant(plan.uuid) if plan.state in RUNNING else None
    return run_by(claimant) if claimant else None


def run_by(claimant: Claimant) -> str:
    """Return a sentence with user, host and process of a claimant, and whether it is gone."""
    lost = " (that process is gone: it crashed or was killed)" if is_gone(claimant) else ""
    return f"Run by {words(claimant)}{lost}"


def claimant_lines(store: PlanStore, plan: ActionPlan, record: str, now: datetime) -> Iterator[str]:
    """Yield lines about who runs a plan, the last heartbeat, and the requests to this run.

    ``record`` names the database. For a plan that nobody runs, yields only the options of its last
    run.
    """
    claimant = store.claimant(plan.uuid) if plan.state in RUNNING else None
    if claimant is not None:  # it may have ended after the plan was read
        yield run_by(claimant)
    if options := run_with(store, plan):
        yield f"Run with {options}"
    if claimant is None:
        return
    heard = claimant.heartbeat_at
    since = f"Heard of {ago((now - heard).total_seconds())}" if heard else "Never heard of"
    yield f"{since}, in the record {record}"
    names = {a.uuid: a.label for a in plan.actions}
    for request in store.requests(plan.uuid, after=claimant.requests_before):
        yield asked_for(request, names)


def run_with(store: PlanStore, plan: ActionPlan) -> str | None:
    """Return the options of the last run of a plan in words; None without a run.

    Of a run in another record, from which the plan was imported, the history has them.
    """
    last = store.last_claimant(plan.uuid)
    if last is not None:
        return run_options(last.options) if last.options else None
    runs = [entry for entry in store.history(plan.uuid) if entry.verb == BEGINS]
    return (runs[-1].why or "").partition(" runs it: ")[2] or None if runs else None


def asked_for(request: Request, names: Mapping[str, str]) -> str:
    """Return a line about a request: its verb, its user, its time and its reason.

    >>> asked_for(Request(verb="skip", who="ada", why="by hand", action="u"), {"u": "db-1"})
    'Requested: skip db-1, by ada: by hand'
    """
    limits = " ".join(f"{name}={number}" for name, number in request.limits.items())
    of = names.get(request.action, request.action) if request.action else limits
    at = f" at {request.created_at:%Y-%m-%d %H:%M:%S} UTC" if request.created_at else ""
    why = f": {request.why}" if request.why else ""
    return f"Requested: {request.verb}{f' {of}' if of else ''}, by {request.who}{at}{why}"


def goes_on(store: PlanStore, plan: ActionPlan) -> bool:
    """Return whether a plan has stopped and can go on: paused, failed, or without a living applier.

    Whether the applier on another host still lives is found out by waiting for its heartbeat.
    """
    from applier.run import resume

    if plan.state in RUNNING:
        claimant = store.claimant(plan.uuid)
        here = claimant is not None and claimant.host == this_process.this_host()
        return not here or is_gone(claimant)
    return not resume.is_refused(plan)


def retried(store: PlanStore, plan: ActionPlan, change: Callable[[ActionPlan], None]) -> None:
    """Call ``change`` with a plan; if it refuses, retry with the plan in its new state.

    The state of the plan may have changed after it was read, for example because a service claimed
    it. If state and claim are the same as before, the error is raised.
    """
    before = plan.state, _claim(store, plan)
    while True:
        try:
            return change(plan)
        except (PlanConflict, InvalidTransition):
            plan = store.load_plan(plan.uuid)
            now = plan.state, _claim(store, plan)
            if now == before:
                raise
            before = now


def _claim(store: PlanStore, plan: ActionPlan) -> Claimant | None:
    """Return the claimant without its heartbeat, which changes while the claim stays."""
    claimant = store.claimant(plan.uuid)
    return claimant and claimant._replace(heartbeat_at=None)


def request_message(store: PlanStore, plan: ActionPlan, what: str) -> str:
    """Return the message about a stored request, with a warning if the claimant has died.

    ``what`` is an infinitive, such as ``to pause it``.
    """
    claimant = store.claimant(plan.uuid)
    if claimant is None:
        return f"{named(plan)} was asked {what}, and its run has ended meanwhile."
    text = f"{named(plan)} is ONGOING: {words(claimant)} runs it, and has been asked {what}."
    if is_gone(claimant):
        text += " But that process is gone: it crashed or was killed, and nobody will do it."
    return text


def of_last_run(store: RunStore, plan: ActionPlan) -> dict[str, int]:
    """Return the limits that were set during the last run, by token, and its ``max_workers``.

    The latest request counts. A new run begins with the limits of the plan.
    """
    claimant = store.last_claimant(plan.uuid)
    found: dict[str, int] = {}
    if claimant is not None:
        found |= {MAX_WORKERS: claimant.options.max_workers} if claimant.options else {}
        for request in store.requests(plan.uuid, claimant.requests_before):
            found |= request.limits if request.verb == RequestVerb.LIMIT else {}
    return found


def holding_now(store: RunStore, plan: ActionPlan) -> dict[str, int]:
    """Return the limits that were set and hold now; none if nobody runs the plan."""
    return of_last_run(store, plan) if plan.state in RUNNING else {}
