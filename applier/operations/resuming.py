# SPDX-License-Identifier: Apache-2.0
"""Resume a plan, or list what resuming it would do."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from applier.assembly import Assembly, now
from applier.operations import Operator, claim, services
from applier.run import plan_cloud
from applier.scheduling.resumption import TO_VERIFY
from applier.wording import count
from planner.model import JOIN, ActionPlan
from planner.states import ActionState


def foresee(assembly: Assembly, operator: Operator, plan: ActionPlan) -> None:
    """Pass lines about what resuming a plan would do to the operator; change nothing.

    It blocks and raises as :func:`resume`.
    """
    from applier.run import resume as run_resume

    _require_resumable(assembly, plan)
    plan, _ = run_resume.resumable(assembly.store, plan.uuid, tell=operator.note)
    commands = assembly.runner().found_commands(plan.uuid)
    for line in foreseen(plan, run_resume.to_reset(plan), commands):
        operator.say(line)


def resume(assembly: Assembly, operator: Operator, plan: ActionPlan, why: str | None) -> None:
    """Make a plan PENDING again; the operator gets lines about what will be verified and run.

    If the plan has a claimant, the call blocks until that has missed enough heartbeats to count as
    dead. Raises PlanConflict if the claimant writes one, or if the state of the plan does not allow
    it. Raises OtherCloud, and GuardRefusal if the plan may not run.
    """
    from applier.run import resume as run_resume

    _require_resumable(assembly, plan)
    store = assembly.store
    run_resume.resume(
        store,
        plan.uuid,
        clock=now,
        tell=operator.note,
        who=operator.name,
        why=why,
        history=operator.entry("resume", why),
    )
    plan = store.load_plan(plan.uuid)
    for line in foreseen(plan, ()):
        operator.say(line)
    found = services.present(store, plan_cloud.needed_by(plan, assembly.plugins))
    if found:
        for line in services.pending_lines(plan, found[0]):
            operator.say(line)
    else:
        instead = f"Run it: actionplan apply {plan.uuid[:8]}"
        operator.say(f"{claim.named(plan)} is PENDING. {instead}")


def _require_resumable(assembly: Assembly, plan: ActionPlan) -> None:
    from applier.run import resume as run_resume

    if run_resume.is_refused(plan):
        raise claim.wrong_state(plan)
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
