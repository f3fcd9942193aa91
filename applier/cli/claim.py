"""Who runs a plan, in words, and what an operator can do while somebody does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from applier.cli.reporters.formatting import ago, one_line
from applier.contracts import Claimant, Request
from applier.errors import PlanConflict
from applier.store import Store
from planner.model import ActionPlan
from planner.states import PlanState

#: Somebody runs a plan in one of these.
RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)
#: Why a plan that can be resumed cannot be started or removed as it stands.
_STANDS = {
    PlanState.RECOMMENDED: "it has not been started yet",
    PlanState.ONGOING: "it runs",
    PlanState.CANCELLING: "it is being cancelled",
    PlanState.FAILED: "it has ended",
    PlanState.CANCELLED: "it has ended",
}
#: What can be done with it; with any other, to make it anew.
_INSTEAD = {
    PlanState.RECOMMENDED: "run it: actionplan apply {}",
    PlanState.PENDING: "run it here: actionplan apply {}",
    PlanState.ONGOING: "look: actionplan show {}",
    PlanState.CANCELLING: "look: actionplan show {}",
    PlanState.FAILED: "go on with it: actionplan resume {}",
    PlanState.CANCELLED: "go on with it: actionplan resume {}",
}


def words(claimant: Claimant | None) -> str:
    """Name who runs a plan.

    >>> words(Claimant(host="control-1", pid=4711, user="operator"))
    'operator on control-1, process 4711'
    """
    if claimant is None:
        return "nobody that is known"
    return f"{claimant.user} on {claimant.host}, process {claimant.pid}"


def named(plan: ActionPlan) -> str:
    """Begin a sentence about a plan: ``last`` may be another one than the person thinks."""
    return f"Plan {plan.uuid[:8]}" + (f" ({one_line(plan.name)})" if plan.name else "")


def is_gone(claimant: Claimant | None) -> bool:
    """True if the process ran on this host and is there no more: it crashed, or was killed."""
    from applier.run import resume

    return claimant is not None and resume.is_gone(claimant)


def headline(store: Store, plan: ActionPlan) -> str | None:
    """Say who runs a plan, above what else is shown of it; None if nobody does."""
    if plan.state not in RUNNING:
        return None
    claimant = store.claimant(plan.uuid)
    lost = " (that process is gone: it crashed or was killed)" if is_gone(claimant) else ""
    return f"Run by {words(claimant)}{lost}"


def under_way(store: Store, plan: ActionPlan, record: str, now: datetime) -> Iterator[str]:
    """Say who runs a plan, since when nothing was heard, and what was asked for."""
    first = headline(store, plan)
    if first is None:
        return
    yield first
    claimant = store.claimant(plan.uuid)
    heard = claimant and claimant.heartbeat_at
    since = f"Heard of {ago((now - heard).total_seconds())}" if heard else "Never heard of"
    yield f"{since}, in the record {record}"
    names = {a.uuid: a.label for a in plan.actions}
    for request in store.requests(plan.uuid):
        yield asked_for(request, names)


def asked_for(request: Request, names: Mapping[str, str]) -> str:
    """Say what an operator asked for, with who, when and why.

    >>> asked_for(Request(verb="skip", who="ada", why="by hand", action="u"), {"u": "db-1"})
    'Asked for: skip db-1, by ada: by hand'
    """
    limits = " ".join(f"{name}={number}" for name, number in request.limits.items())
    of = names.get(request.action, request.action) if request.action else limits
    at = f" at {request.created_at:%Y-%m-%d %H:%M:%S} UTC" if request.created_at else ""
    why = f": {request.why}" if request.why else ""
    return f"Asked for: {request.verb}{f' {of}' if of else ''}, by {request.who}{at}{why}"


def taken(store: Store, uuid: str) -> PlanConflict | None:
    """Give the refusal of whoever comes second; None if nobody runs the plan."""
    state = store.load_plan(uuid).state
    if state not in RUNNING:
        return None
    claimant, short = store.claimant(uuid), uuid[:8]
    text = f"plan {short} is {state}: {words(claimant)} runs it"
    if is_gone(claimant):
        text += (
            ", and that process is gone: it crashed or was killed. "
            f"Go on with it: actionplan resume {short}"
        )
    else:
        text += f". Look: actionplan show {short}. Stop it: actionplan cancel {short}"
    return PlanConflict(uuid, state, text)


def stands(plan: ActionPlan) -> PlanConflict:
    """Say why a plan is not one for what was asked, and what can be done with it."""
    from applier.run import resume

    why = {**resume.REFUSED, **_STANDS}[plan.state]
    instead = _INSTEAD.get(plan.state, "make a new one: actionplan create FILE")
    if plan.state is PlanState.SUCCEEDED and not resume.refused(plan):
        why, instead = "a rollback undid some of it", "do that again: actionplan resume {}"
    text = f"{named(plan).replace('Plan', 'plan', 1)} is {plan.state}: {why}"
    return PlanConflict(plan.uuid, plan.state, f"{text}; {instead.format(plan.uuid[:8])}")


def asked(store: Store, plan: ActionPlan, what: str) -> str:
    """Say that whoever runs a plan has been asked for something, and whether that will help."""
    claimant = store.claimant(plan.uuid)
    text = f"{named(plan)} is ONGOING: {words(claimant)} runs it, and has been asked {what}."
    if is_gone(claimant):
        text += " But that process is gone: it crashed or was killed, and nobody will do it."
    return text
