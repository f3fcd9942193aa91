# SPDX-License-Identifier: Apache-2.0
"""What interrupted actions have left: finds and ends their commands, and verifies their work."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from applier import log_fields
from applier.contracts import ActionPlugin, Claimant, Report, Verified
from applier.contracts.attempt_machines import AttemptMachines, JobFound
from applier.engines.attempts import AT_ONCE, answers
from applier.engines.environment import ActionEnvironment
from applier.engines.taskflow_engine import CELERY, TaskFlowEngine
from applier.engines.tasks import needs_permit, verified
from applier.errors import ActionFailed, PlanConflict
from applier.run import liveness
from applier.scheduling.resumption import TO_VERIFY, decide, going_on, in_doubt, runs_again
from applier.secrets import resolve
from applier.store.runs import RunStore
from applier.store.worker_jobs import WorkerJob
from applier.wording import count
from planner.errors import short
from planner.making.registry import ENGINES, section_of
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, StateReason

if TYPE_CHECKING:
    from applier.storage.sql import SqlStore

LOG = logging.getLogger(__name__)
#: Jobs at workers by the uuids of their actions.
Jobs = Mapping[str, WorkerJob]


def jobs_of(store: SqlStore, plan: ActionPlan) -> Jobs:
    """Return the jobs of the last attempts of interrupted actions; raises StoreError."""
    attempts = {a.uuid: a.attempts for a in plan.actions if a.state in TO_VERIFY}
    return {
        job.key.action: job
        for job in store.jobs_of(plan.uuid)
        if attempts.get(job.key.action) == job.key.attempt
    }


def no_jobs_of(store: SqlStore, plan: ActionPlan) -> Jobs:
    """Return no jobs, as a process does that runs actions itself.

    Raises PlanConflict if interrupted actions have some, and StoreError.
    """
    if found := jobs_of(store, plan):
        section = section_of(ENGINES, TaskFlowEngine.NAME)
        text = (
            f"plan {short(plan.uuid)} has {count(len(found), 'job')} at workers, which only an "
            f"applier can follow that has [{section}] workers = {CELERY}"
        )
        raise PlanConflict(plan.uuid, plan.state, text)
    return {}


def described(actions: Iterable[Action], environment: ActionEnvironment) -> dict[str, str]:
    """Return a description of the commands of each ONGOING or UNKNOWN action, by uuid.

    It is the reason if a machine cannot be reached. Actions without commands are left out.
    """
    doubtful = [a for a in actions if a.state in TO_VERIFY]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda action: _described(action, environment), doubtful)
        return {a.uuid: text for a, text in zip(doubtful, found, strict=True) if text}


def end_commands(
    actions: Iterable[Action],
    environment: ActionEnvironment,
    *,
    before: Claimant | None = None,
    host: str = "",
    folder: str | None = None,
) -> list[Report]:
    """End the commands of all ONGOING actions; return a report for each of these actions.

    An action whose command was ended, or whose attempt had not begun, is CANCELLED, as in a run.
    Any other is UNKNOWN, with the reason. The reports are not written to the store. ``before`` is
    the claimant that ran the actions, ``host`` this host, ``folder`` that of the jobs here.
    """
    running = [a for a in actions if a.state is ActionState.ONGOING]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = partial(_ended, environment=environment, before=before, host=host, folder=folder)
        return list(pool.map(ended, running))


def unseen_command_text(
    action: Action,
    plugin: type[ActionPlugin],
    before: Claimant | None,
    host: str,
    folder: str | None = None,
) -> str | None:
    """Return a clause about a command that may run and cannot be seen from here, or None.

    The command of an action that runs on its applier's host cannot be seen from another host, nor
    by a user whose jobs are in another ``folder``. Other hosts may have run the plan since an
    action became UNKNOWN; ``before`` is only the last.
    """
    if None not in plugin.runs_on(action.input_parameters):
        return None
    if action.state is ActionState.UNKNOWN:
        return f"its command may still run on another host; none was found on {host}"
    if before is None:
        return None
    if before.host == host:
        if None in (before.jobs, folder) or before.jobs == folder:
            return None
        return (
            f"its command may still run: process {before.pid} of {before.user} left it in "
            f"{before.jobs}, and the commands of this user are in {folder}"
        )
    return (
        f"its command may still run on {before.host}, where process {before.pid} started it, and "
        f"cannot be seen from {host}"
    )


def is_found_there(action: Action, plugin: type[ActionPlugin]) -> bool:
    """Return whether only the machine that began an action can tell if it is still at work.

    It runs commands there, or another attempt cannot join its work.
    """
    given = action.input_parameters
    return None in plugin.runs_on(given) or not plugin.joins_work(given)


def _described(action: Action, environment: ActionEnvironment) -> str | None:
    jobs, reason = _jobs(action, environment)
    return reason or "; ".join(map(str, jobs)) or None


def _ended(
    action: Action,
    environment: ActionEnvironment,
    before: Claimant | None,
    host: str,
    folder: str | None,
) -> Report:
    machines = environment.machines_of(action, action.attempts)
    if machines is not None and machines.withdraw_permit():
        return _report(action, ActionState.CANCELLED, "aborted before it began")
    places = _places(action, environment)
    found: Sequence[JobFound] = ()
    try:
        if machines is not None:
            found = machines.find(places)
            machines.end(places)
            left = [job for job in machines.find(places) if job.is_running]
            if not left and any(job.is_running for job in found):
                return _report(action, ActionState.CANCELLED, "aborted: its command was ended")
            found = left or found
    except (ActionFailed, OSError) as reason:
        LOG.warning("The command of action %s was not ended: %s", action.label, reason)
        why = f"{reason}; its command may still run there"
    else:
        elsewhere = unseen_command_text(
            action, environment.plugins[action.action_type], before, host, folder
        )
        why = "; ".join(map(str, found)) or elsewhere or "no command of it was found"
    message = f"its plan was cancelled without its applier; {why}; {in_doubt(action.label)}"
    return _report(action, ActionState.UNKNOWN, message)._replace(given_up=True)


def _report(action: Action, state: ActionState, message: str) -> Report:
    reason = StateReason.ABORTED if state is ActionState.CANCELLED else None
    return Report(
        uuid=action.uuid, old=action.state, state=state, state_reason=reason, message=message
    )


def _jobs(action: Action, environment: ActionEnvironment) -> tuple[Sequence[JobFound], str | None]:
    """Return the commands of the last attempt, or why one of its machines cannot be reached."""
    machines = environment.machines_of(action, action.attempts)
    if machines is None:
        return (), None
    try:
        return machines.find(_places(action, environment)), None
    except (ActionFailed, OSError) as reason:
        return (), str(reason)


def _places(action: Action, environment: ActionEnvironment) -> list[str | None]:
    """Return this machine and those on which the action runs commands."""
    on = environment.plugins[action.action_type].runs_on(action.input_parameters)
    return list(dict.fromkeys((None, *on)))


class _Finding(NamedTuple):
    """The result for one interrupted action; ``report`` is None if its state stays.

    ``age_s`` is how many seconds ago its command started, if that goes on. ``not_begun`` are the
    machines of its last attempt if that has not begun and never will.
    """

    uuid: str
    report: Report | None
    age_s: float | None = None
    given_up: bool = False
    not_begun: AttemptMachines | None = None


@dataclass(kw_only=True, slots=True)
class Findings:
    """The results for all interrupted actions of a plan.

    ``reports`` change the states of actions. ``continued`` has the actions that go on, because
    commands of them were found: how many seconds ago each was started, by uuid. ``given_up`` are
    the uuids of the UNKNOWN actions of which a command may still run. ``not_begun`` are the
    machines of attempts that may be forgotten once the reports are on record.
    """

    reports: list[Report] = field(default_factory=list)
    continued: dict[str, float] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    not_begun: list[AttemptMachines] = field(default_factory=list)


def verify_all(
    actions: Iterable[Action],
    environment: ActionEnvironment,
    patience_s: float = 30.0,
    *,
    before: Claimant | None = None,
    host: str = "",
    folder: str | None = None,
    permits_are_here: bool = False,
    left_in: Mapping[str, str | None] | None = None,
) -> Findings:
    """Look for the commands of ONGOING and UNKNOWN actions, else let their plugins verify them.

    The store is not changed. Actions are processed in parallel. If none of them has a result for
    ``patience_s`` seconds, the remaining actions are in doubt. ``before`` is the claimant of the
    last run, ``host`` this host, ``folder`` that of the jobs here: commands on another host or in
    another folder cannot be found. With ``permits_are_here``, an attempt may only begin with a
    permit on this machine. ``left_in`` are the processes in which UNKNOWN actions may still be at
    work, by uuid; ONGOING ones are at work in that of ``before``. While such a process may live,
    an action whose type does not join its work is in doubt, unless it is done.
    """
    plugins = environment.plugins
    doubtful = [a for a in actions if a.state in TO_VERIFY]
    # Looked at first: work that is over before its effect is verified has no effect afterwards.
    at_work = _at_work(doubtful, plugins, before, left_in or {})
    is_of_other_host = before is not None and before.host != host
    questions = [
        partial(
            _ask,
            action,
            environment,
            unseen_command_text(action, plugins[action.action_type], before, host, folder),
            is_of_other_host,
            permits_are_here,
            at_work.get(action.uuid),
        )
        for action in doubtful
    ]
    found = {finding.uuid: finding for finding in answers(questions, AT_ONCE, patience_s)}
    if late := len(doubtful) - len(found):
        LOG.error("%d actions could not be verified in time", late)
    made = Findings()
    for action in doubtful:
        finding = found.get(action.uuid) or _late(action, environment, at_work.get(action.uuid))
        made.reports += [finding.report] if finding.report else []
        made.not_begun += [finding.not_begun] if finding.not_begun else []
        if finding.age_s is not None:
            made.continued[action.uuid] = finding.age_s
        if finding.given_up:
            made.given_up.add(action.uuid)
    return made


def left_in(store: RunStore, plan: ActionPlan) -> dict[str, str | None]:
    """Return the processes in which UNKNOWN actions may still be at work; None if in none."""
    unknown = [a.uuid for a in plan.actions if a.state is ActionState.UNKNOWN]
    tried = {uuid: store.attempts(plan.uuid, uuid) for uuid in unknown}
    return {uuid: attempts[-1].left_in for uuid, attempts in tried.items() if attempts}


def _at_work(
    doubtful: Iterable[Action],
    plugins: Mapping[str, type[ActionPlugin]],
    before: Claimant | None,
    left_in: Mapping[str, str | None],
) -> dict[str, str]:
    """Return the processes that may be at work on actions which another attempt cannot join."""
    claimant = "an unknown process" if before is None else f"{before.host}:{before.pid}"
    at_work = {}
    for action in doubtful:
        is_ongoing = action.state is ActionState.ONGOING
        process = claimant if is_ongoing else left_in.get(action.uuid)
        joins = plugins[action.action_type].joins_work(action.input_parameters)
        if process and not joins and liveness.may_be_at_work(process, action.uuid):
            at_work[action.uuid] = process
    return at_work


def _late(action: Action, environment: ActionEnvironment, process: str | None) -> _Finding:
    """Return the result for an action of which nothing was heard in time."""
    plugin = environment.plugins[action.action_type]
    on = plugin.runs_on(action.input_parameters)
    elsewhere = "nothing was heard of its machine in time" if on else None
    return _judged(action, plugin, Verified.IN_DOUBT, None, elsewhere, process)


def _judged(
    action: Action,
    plugin: type[ActionPlugin],
    found: Verified,
    lost: str | None,
    elsewhere: str | None,
    process: str | None,
) -> _Finding:
    """Return the result for an action after its plugin verified it.

    ``lost`` is a sentence about the end of its command, ``elsewhere`` one about processes of it
    that may still run. ``process`` is the one that may still be at work on it.
    """
    if elsewhere is None and process is not None:
        elsewhere = f"{process} began it and may still be at work on it"
    report = decide(action, found, rerun_safe=plugin.RERUN_SAFE, lost=lost, elsewhere=elsewhere)
    given_up = elsewhere is not None and found is not Verified.DONE
    left = report and report._replace(left_in=process)
    return _Finding(action.uuid, left, given_up=given_up)


def _ask(action: Action, *given: Any) -> _Finding:
    """Return the result for one action; records that its plugin logs meanwhile carry its uuid."""
    with log_fields.about(action=action.uuid):
        return _found(action, *given)


def _found(
    action: Action,
    environment: ActionEnvironment,
    unseen: str | None,
    is_of_other_host: bool,
    permits_are_here: bool,
    process: str | None,
) -> _Finding:
    """Look for the commands of an action, else call ``verify`` of its plugin."""
    machines = environment.machines_of(action, action.attempts)
    plugin = environment.plugins[action.action_type]
    is_here = permits_are_here and needs_permit(action, plugin)
    if machines is not None and machines.withdraw_permit(is_here=is_here):
        return _Finding(action.uuid, runs_again(action), not_begun=machines)
    jobs, unreached = _jobs(action, environment)
    elsewhere = unreached and f"{unreached}; its command may still run there"
    lost = next((job for job in jobs if job.is_lost), None)
    if jobs and (lost is None or any(job.is_running for job in jobs)):
        age_s = max(job.age_s or 0.0 for job in jobs)
        return _Finding(action.uuid, going_on(action), age_s)
    context = environment.context(action, _ignore)
    try:
        parameters, blotting = resolve(action.input_parameters, plugin.SCHEMA)
    except ActionFailed as reason:
        LOG.warning("Action %s cannot be verified: %s", action.uuid, reason)
        answer = Verified.IN_DOUBT
    else:
        answer = verified(lambda: plugin(parameters, context).verify(), blotting)
    if unseen is not None and is_of_other_host:
        lost = None  # two hosts may share the folder: a process of the other is not seen here
    what = None if lost is None else str(lost)
    elsewhere = elsewhere or (unseen if lost is None else None)
    return _judged(action, plugin, answer, what, elsewhere, process)


def _ignore(_text: str) -> None:
    """Ignore the output of a plugin that verifies."""
