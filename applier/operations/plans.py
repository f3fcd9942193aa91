# SPDX-License-Identifier: Apache-2.0
"""Start, pause, resume and cancel a plan, and change its limits.

The state or the claimant of a plan may change after it was read, for example because a service
claims it. Then start, pause and cancel are retried with the plan as it is then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from applier.assembly import Assembly, now
from applier.contracts import Claimant, Report, Request, RequestVerb
from applier.errors import ConfigurationError, GuardRefusal, PlanConflict, UnknownActionTypes
from applier.guarding import guard
from applier.operations import Operator, drift, refusals, services, start_times, who_runs
from applier.run import plan_cloud
from applier.scheduling.interrupted import TO_VERIFY
from applier.wording import count, some
from planner.plan.guarantees import half_done
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import ENDED_PLAN, ActionState, PlanState

#: The most nodes that a message names.
_MOST = 10


def start(
    assembly: Assembly,
    operator: Operator,
    plan: ActionPlan,
    *,
    accept_drift: bool = False,
    at: datetime | None = None,
    in_window: bool = False,
    why: str | None = None,
) -> datetime | None:
    """Make a RECOMMENDED or PAUSED plan PENDING, so that an applier service runs it.

    With ``at``, it starts then and not before, with ``in_window`` as :func:`start_times.wanted`
    says; return that time. Of a plan that is PENDING, it is changed. Raises InvalidInput,
    PlanConflict, OtherCloud, GuardRefusal if it may not run, and OutOfDate if the cloud is not as
    planned any more and that is not accepted.
    """

    begins = start_times.wanted(assembly, operator, plan, at, in_window=in_window)

    def start_it(plan: ActionPlan) -> None:
        _start(assembly, operator, plan, accept_drift, begins, why)

    who_runs.retried(assembly.store, plan, start_it)
    return begins


def _start(
    assembly: Assembly,
    operator: Operator,
    plan: ActionPlan,
    accept_drift: bool,
    at: datetime | None,
    why: str | None,
) -> None:
    is_moved = plan.state is PlanState.PENDING and plan.start_at != at
    if not is_moved and plan.state not in (PlanState.RECOMMENDED, PlanState.PAUSED):
        raise refusals.wrong_state(plan)
    plan_cloud.require_own(plan, assembly.plugins, assembly.cloud)
    assembly.require_allowed(plan)
    if plan_cloud.needed_by(plan, assembly.plugins) is not None:
        drift.require_no_drift(
            assembly, plan, operator.say, accepted=accept_drift, in_any_case=False
        )
    told = [f"at {at:%Y-%m-%d %H:%M:%S} UTC"] if at else []
    started = operator.entry("start", ": ".join([*told, *([why] if why else [])]) or None)
    assembly.store.start_plan(plan.uuid, at, now=now(), history=started)
    for line in start_times.lines(replace(plan, state=PlanState.PENDING, start_at=at)):
        operator.say(line)


def pause(
    assembly: Assembly,
    operator: Operator,
    plan: ActionPlan,
    why: str | None,
    *,
    at_once: bool = False,
) -> None:
    """Store the request to pause an ONGOING plan, which its claimant follows later.

    Nodes of places that have begun finish first; with ``at_once``, they are left half done. A
    PAUSED plan is left as it is. Raises PlanConflict for a plan in another state.
    """
    verb = RequestVerb.PAUSE_NOW if at_once else RequestVerb.PAUSE
    request = Request(verb=verb, who=operator.name, why=why)
    who_runs.retried(assembly.store, plan, lambda p: _pause(assembly, operator, p, request))


def _pause(assembly: Assembly, operator: Operator, plan: ActionPlan, request: Request) -> None:
    short = plan.uuid[:8]
    if plan.state is PlanState.PAUSED:
        instead = f"Continue it with: actionplan apply {short}"
        operator.say(f"{who_runs.named(plan)} is PAUSED already. {instead}")
        return
    if plan.state is not PlanState.ONGOING:
        text = f"plan {short} is {plan.state}: only a running plan can be paused"
        if plan.state is PlanState.PENDING:
            text += f". To keep it from being run: actionplan stop {short} --cancel"
        raise PlanConflict(plan.uuid, plan.state, text)
    _say_half_done(operator, plan, request)
    _ask(assembly, operator, plan, request, "to pause it")


def _say_half_done(operator: Operator, plan: ActionPlan, request: Request) -> None:
    """Say which nodes finish first, or are left half done."""
    nodes = [node for node, is_open in half_done(plan).items() if is_open]
    if nodes:
        names = some(nodes, _MOST, ", ")
        at_once = request.verb in (RequestVerb.PAUSE_NOW, RequestVerb.CANCEL_NOW)
        left, finish = f"Left half done: {names}.", f"These finish first, no other begins: {names}."
        operator.say(left if at_once else finish)


def cancel(
    assembly: Assembly,
    operator: Operator,
    plan: ActionPlan,
    why: str | None,
    *,
    at_once: bool = False,
) -> None:
    """Cancel a plan that nobody runs; if it is ONGOING, store that as a request for its claimant.

    Nodes of places that have begun finish first, unless ``at_once`` is set. A plan whose claimant
    has died on this host counts as one that nobody runs. One that is CANCELLING is left as it is,
    or stopped ``at_once``. Raises PlanConflict if the plan has ended.
    """
    verb = RequestVerb.CANCEL_NOW if at_once else RequestVerb.CANCEL
    request = Request(verb=verb, who=operator.name, why=why)
    who_runs.retried(assembly.store, plan, lambda p: _cancel(assembly, operator, p, request))


def _cancel(assembly: Assembly, operator: Operator, plan: ActionPlan, request: Request) -> None:
    at_once = request.verb == RequestVerb.CANCEL_NOW
    if plan.state in ENDED_PLAN:
        text = f"plan {plan.uuid[:8]} is {plan.state}: nothing is left to cancel"
        raise PlanConflict(plan.uuid, plan.state, text)
    claimant = assembly.store.claimant(plan.uuid)
    is_gone = plan.state in who_runs.RUNNING and who_runs.is_gone(claimant)
    if is_gone or plan.state not in who_runs.RUNNING:
        _say_half_done(operator, plan, request._replace(verb=RequestVerb.CANCEL_NOW))
        _end(assembly, operator, plan, request, claimant if is_gone else None)
    elif plan.state is PlanState.CANCELLING and not (at_once and half_done(plan)):
        running = "its running actions are awaited"
        operator.say(f"{who_runs.named(plan)} is being cancelled already; {running}.")
    else:
        _say_half_done(operator, plan, request)
        _ask(assembly, operator, plan, request, "to cancel it")


def _ask(
    assembly: Assembly, operator: Operator, plan: ActionPlan, request: Request, what: str
) -> None:
    """Store a request, and tell the operator ``what`` its claimant has been asked."""
    words = " ".join(f"{name}={number}" for name, number in request.limits.items())
    why = ": ".join(text for text in (words, request.why) if text) or None
    asked = operator.entry(request.verb, why)
    assembly.store.add_request(plan.uuid, request, now=now(), history=asked)
    operator.say(who_runs.request_message(assembly.store, plan, what))


def _end(
    assembly: Assembly,
    operator: Operator,
    plan: ActionPlan,
    request: Request,
    gone: Claimant | None,
) -> None:
    """Make a plan CANCELLED, and end the commands that a claimant which has died left running."""
    reports: Sequence[Report] = ()
    if any(action.state is ActionState.ONGOING for action in plan.actions):
        try:
            reports = assembly.runner().end_commands(plan.uuid)
        except (UnknownActionTypes, ConfigurationError) as reason:
            operator.note(f"Its commands may go on: {reason}")
    assembly.store.move_plan(
        plan.uuid,
        PlanState.CANCELLED,
        now=now(),
        message=f"cancelled {request.by}",
        seen=gone,
        reports=reports,
        history=operator.entry("cancel", request.why),
    )
    dead = ": the process that ran it is gone" if gone else ""
    operator.say(f"{who_runs.named(plan)} is CANCELLED{dead}.")
    names = {action.uuid: action.label for action in plan.actions}
    for report in reports:
        operator.say(f"  {names[report.uuid]} is {report.state}: {report.message}")


def set_limits(
    assembly: Assembly,
    operator: Operator,
    plan: ActionPlan,
    limits: Mapping[str, int],
    why: str | None,
) -> None:
    """Store the request to change limits of an ONGOING plan, which its claimant follows later.

    ``limits`` are numbers by token, or by ``max_workers``. Raises PlanConflict for a plan in
    another state, and GuardRefusal for a limit that may not be raised.
    """
    if plan.state is not PlanState.ONGOING:
        text = (
            f"plan {plan.uuid[:8]} is {plan.state}: limits are changed while somebody runs it; "
            "before that: apply --set max_workers=N, or limits in the document"
        )
        raise PlanConflict(plan.uuid, plan.state, text)
    refused = guard.raise_refused(plan, assembly.guard.demanded(plan), limits)
    if refused:
        raise GuardRefusal(plan.uuid, refused)
    request = Request(verb="limit", who=operator.name, why=why, limits=limits)
    words = ", ".join(f"{name}={number}" for name, number in limits.items())
    _ask(assembly, operator, plan, request, f"for {words}")


def foresee(assembly: Assembly, operator: Operator, plan: ActionPlan) -> Claimant | None:
    """Pass lines about what going on with a plan would do to the operator; change nothing.

    Return its claimant, which has died, or None. It blocks and raises as :func:`go_on`.
    """
    from applier.run import resume as run_resume

    _require_resumable(assembly, plan)
    plan, dead = run_resume.resumable(assembly.store, plan.uuid, tell=operator.note)
    commands = assembly.runner().found_commands(plan.uuid)
    for line in foreseen(plan, run_resume.to_reset(plan), commands):
        operator.say(line)
    return dead


def resume(assembly: Assembly, operator: Operator, plan: ActionPlan, why: str | None) -> None:
    """Go on with a plan, by whoever runs plans: see :func:`go_on`.

    The operator gets lines about what will be verified and run, and by whom.
    """
    plan = go_on(assembly, operator, plan, why)
    for line in foreseen(plan, ()):
        operator.say(line)
    found = services.present(assembly, plan_cloud.needed_by(plan, assembly.plugins))
    if found:
        for line in services.pending_lines(plan, found[0]):
            operator.say(line)
    else:
        instead = f"Run it: actionplan apply {plan.uuid[:8]}"
        operator.say(f"{who_runs.named(plan)} is PENDING. {instead}")


def go_on(
    assembly: Assembly,
    operator: Operator,
    plan: ActionPlan,
    why: str | None,
    dead: Claimant | None = None,
) -> ActionPlan:
    """Make a plan PENDING that was paused or failed, or whose applier died; return it.

    If the plan has a claimant, the call blocks until that has missed enough heartbeats to count as
    dead, unless :func:`foresee` has found it ``dead``. Raises PlanConflict if the claimant writes
    one, or if the state of the plan does not allow it. Raises OtherCloud, and GuardRefusal if the
    plan may not run.
    """
    from applier.run import resume as run_resume

    _require_resumable(assembly, plan)
    run_resume.resume(
        assembly.store,
        plan.uuid,
        clock=now,
        tell=operator.note,
        who=operator.name,
        why=why,
        history=operator.entry("resume", why),
        dead=dead,
    )
    return assembly.store.load_plan(plan.uuid)


def _require_resumable(assembly: Assembly, plan: ActionPlan) -> None:
    from applier.run import resume as run_resume

    if run_resume.is_refused(plan):
        raise refusals.wrong_state(plan)
    plan_cloud.require_own(plan, assembly.plugins, assembly.cloud)
    assembly.require_allowed(plan)


def foreseen(
    plan: ActionPlan, reset: Collection[str], commands: Mapping[str, str] | None = None
) -> list[str]:
    """Return lines that count the actions done, to verify and to run.

    ``reset`` are the uuids of the actions that become PENDING when the plan is resumed.
    ``commands`` has texts about the commands of actions to verify, by uuid of the action.
    """
    again = set(reset)
    real = [a for a in plan.actions if a.action_type != JOIN]
    verify = [a for a in real if a.state in TO_VERIFY]
    to_do = [a for a in real if a.state is ActionState.PENDING or a.uuid in again]
    done = len(real) - len(verify) - len(to_do)
    lines = [f"{count(done, 'action')} done, {len(verify)} to verify first, {len(to_do)} to do."]
    for action in verify[:20]:
        why = action.status_message
        if action.state is ActionState.ONGOING:
            why = "it was running, and its end was not recorded"
        why = (commands or {}).get(action.uuid, why)
        lines.append(f"  to verify  {action.label}: {why or 'it is in doubt'}")
    if len(verify) > 20:
        lines.append(f"  and {len(verify) - 20} more")
    return lines
