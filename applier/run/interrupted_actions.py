# SPDX-License-Identifier: Apache-2.0
"""What interrupted actions have left: finds and ends their commands, and verifies their work."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from applier import log_fields
from applier.contracts import ActionPlugin, Claimant, Report, Verified, silent
from applier.engines.attempts_in_progress import AT_ONCE, answers
from applier.engines.environment import ActionEnvironment
from applier.engines.taskflow_engine import CELERY, TaskFlowEngine
from applier.engines.tasks import needs_permit, verified
from applier.errors import ActionFailed, PlanConflict
from applier.run import liveness
from applier.scheduling.interrupted import TO_VERIFY, decide, going_on, in_doubt, runs_again
from applier.secret_values import resolve
from applier.store.runs import RunStore
from applier.store.worker_jobs import WorkerJob
from applier.wording import count
from planner.errors import short
from planner.making.registry import ENGINES, section_of
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState, StateReason

if TYPE_CHECKING:
    from applier.machines.found_jobs import FoundJob
    from applier.machines.open_machines import AttemptMachines
    from applier.storage.sql_store import SqlStore

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


class Finding(NamedTuple):
    """The result for one interrupted action; ``report`` is None if its state stays.

    ``age_s`` is how many seconds ago its command started, if that goes on. ``given_up`` is true for
    an action that stays UNKNOWN because a command of it may still run. ``not_begun`` are the
    machines of its last attempt if that has not begun and never will; the attempt may be forgotten
    once the report is on record.
    """

    uuid: str
    report: Report | None
    age_s: float | None = None
    given_up: bool = False
    not_begun: AttemptMachines | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class InterruptedActions:
    """Looks for what the interrupted actions of a plan have left; the store is not changed.

    ``before`` is the claimant of the last run, ``host`` this host, ``folder`` that of the jobs
    here: commands on another host or in another folder cannot be found. With ``permits_are_here``,
    an attempt may only begin with a permit on this machine. ``left_in`` are the processes in which
    UNKNOWN actions may still be at work, by uuid; ONGOING ones are at work in that of ``before``.
    """

    environment: ActionEnvironment
    before: Claimant | None = None
    host: str = ""
    folder: str | None = None
    permits_are_here: bool = False
    left_in: Mapping[str, str | None] = field(default_factory=dict)

    def described(self, actions: Iterable[Action]) -> dict[str, str]:
        """Return a description of the commands of each ONGOING or UNKNOWN action, by uuid.

        It is the reason if a machine cannot be reached. Actions without commands are left out.
        """
        doubtful = [a for a in actions if a.state in TO_VERIFY]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = zip(doubtful, pool.map(self._jobs, doubtful), strict=True)
            texts = {a.uuid: why or "; ".join(map(str, jobs)) for a, (jobs, why) in found}
        return {uuid: text for uuid, text in texts.items() if text}

    def end_commands(self, actions: Iterable[Action]) -> list[Report]:
        """End the commands of all ONGOING actions; return a report for each of these actions.

        An action whose command was ended, or whose attempt had not begun, is CANCELLED, as in a
        run. Any other is UNKNOWN, with the reason. The reports are not written to the store.
        """
        running = [a for a in actions if a.state is ActionState.ONGOING]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(self._ended, running))

    def verify(self, actions: Iterable[Action], patience_s: float = 30.0) -> list[Finding]:
        """Look for the commands of ONGOING and UNKNOWN actions, else let their plugins verify them.

        Actions are processed in parallel. If none of them has a result for ``patience_s`` seconds,
        the remaining actions are in doubt. While a process that has begun an action may live, the
        action is in doubt if its type does not join its work, unless it is done.
        """
        doubtful = [a for a in actions if a.state in TO_VERIFY]
        # Looked at first: work that is over before its effect is verified has no effect afterwards.
        at_work = {a.uuid: process for a in doubtful if (process := self._at_work(a))}
        questions = [partial(self._ask, a, at_work.get(a.uuid)) for a in doubtful]
        found = {finding.uuid: finding for finding in answers(questions, AT_ONCE, patience_s)}
        if late := len(doubtful) - len(found):
            LOG.error("%d actions could not be verified in time", late)
        return [found.get(a.uuid) or self._late(a, at_work.get(a.uuid)) for a in doubtful]

    def _plugin(self, action: Action) -> type[ActionPlugin]:
        return self.environment.plugins[action.action_type]

    def unseen(self, action: Action) -> str | None:
        """Return a clause about a command that may run and cannot be seen from here, or None.

        The command of an action that runs on its applier's host cannot be seen from another host,
        nor by a user whose jobs are in another folder. Other hosts may have run the plan since an
        action became UNKNOWN; ``before`` is only the last.
        """
        before = self.before
        if None not in self._plugin(action).runs_on(action.input_parameters):
            return None
        if action.state is ActionState.UNKNOWN:
            return f"its command may still run on another host; none was found on {self.host}"
        if before is None:
            return None
        if before.host == self.host:
            if None in (before.jobs, self.folder) or before.jobs == self.folder:
                return None
            return (
                f"its command may still run: process {before.pid} of {before.user} left it in "
                f"{before.jobs}, and the commands of this user are in {self.folder}"
            )
        return (
            f"its command may still run on {before.host}, where process {before.pid} started it, "
            f"and cannot be seen from {self.host}"
        )

    def _ended(self, action: Action) -> Report:
        machines = self.environment.machines_of(action, action.attempts)
        if machines is not None and machines.withdraw_permit():
            return _report(action, ActionState.CANCELLED, "aborted before it began")
        places = self._places(action)
        found: Sequence[FoundJob] = ()
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
            here = "; ".join(map(str, found))
            why = here or self.unseen(action) or "no command of it was found"
        message = f"its plan was cancelled without its applier; {why}; {in_doubt(action.label)}"
        return _report(action, ActionState.UNKNOWN, message)._replace(given_up=True)

    def _jobs(self, action: Action) -> tuple[Sequence[FoundJob], str | None]:
        """Return the commands of the last attempt, or why one of its machines is not reached."""
        machines = self.environment.machines_of(action, action.attempts)
        if machines is None:
            return (), None
        try:
            return machines.find(self._places(action)), None
        except (ActionFailed, OSError) as reason:
            return (), str(reason)

    def _places(self, action: Action) -> list[str | None]:
        """Return this machine and those on which the action runs commands."""
        on = self._plugin(action).runs_on(action.input_parameters)
        return list(dict.fromkeys((None, *on)))

    def _at_work(self, action: Action) -> str | None:
        """Return the process that may be at work on an action which another attempt cannot join."""
        process = self.left_in.get(action.uuid)
        if action.state is ActionState.ONGOING:
            before = self.before
            process = "an unknown process" if before is None else f"{before.host}:{before.pid}"
        joins = self._plugin(action).joins_work(action.input_parameters)
        is_at_work = process and not joins and liveness.may_be_at_work(process, action.uuid)
        return process if is_at_work else None

    def _late(self, action: Action, process: str | None) -> Finding:
        """Return the result for an action of which nothing was heard in time."""
        on = self._plugin(action).runs_on(action.input_parameters)
        elsewhere = "nothing was heard of its machine in time" if on else None
        return self._judged(action, Verified.IN_DOUBT, None, elsewhere, process)

    def _judged(
        self,
        action: Action,
        found: Verified,
        lost: str | None,
        elsewhere: str | None,
        process: str | None,
    ) -> Finding:
        """Return the result for an action after its plugin verified it.

        ``lost`` is a sentence about the end of its command, ``elsewhere`` one about processes of it
        that may still run. ``process`` is the one that may still be at work on it.
        """
        if elsewhere is None and process is not None:
            elsewhere = f"{process} began it and may still be at work on it"
        is_safe = self._plugin(action).RERUN_SAFE
        report = decide(action, found, rerun_safe=is_safe, lost=lost, elsewhere=elsewhere)
        given_up = elsewhere is not None and found is not Verified.DONE
        left = report and report._replace(left_in=process)
        return Finding(action.uuid, left, given_up=given_up)

    def _ask(self, action: Action, process: str | None) -> Finding:
        """Return the result for one action; records that its plugin logs carry its uuid."""
        with log_fields.about(action=action.uuid):
            return self._found(action, process)

    def _found(self, action: Action, process: str | None) -> Finding:
        """Look for the commands of an action, else call ``verify`` of its plugin."""
        plugin = self._plugin(action)
        machines = self.environment.machines_of(action, action.attempts)
        is_here = self.permits_are_here and needs_permit(action, plugin)
        if machines is not None and machines.withdraw_permit(is_here=is_here):
            return Finding(action.uuid, runs_again(action), not_begun=machines)
        jobs, unreached = self._jobs(action)
        lost = next((job for job in jobs if job.is_lost), None)
        if jobs and (lost is None or any(job.is_running for job in jobs)):
            age_s = max(job.age_s or 0.0 for job in jobs)
            return Finding(action.uuid, going_on(action), age_s)
        try:
            parameters, blotting = resolve(action.input_parameters, plugin.SCHEMA)
        except ActionFailed as reason:
            LOG.warning("Action %s cannot be verified: %s", action.uuid, reason)
            answer = Verified.IN_DOUBT
        else:
            context = self.environment.context(action, silent)
            answer = verified(lambda: plugin(parameters, context).verify(), blotting)
        unseen = self.unseen(action)
        if unseen is not None and self.before and self.before.host != self.host:
            lost = None  # two hosts may share the folder: a process of the other is not seen here
        elsewhere = unreached and f"{unreached}; its command may still run there"
        elsewhere = elsewhere or (unseen if lost is None else None)
        return self._judged(action, answer, None if lost is None else str(lost), elsewhere, process)


def left_in(store: RunStore, plan: ActionPlan) -> dict[str, str | None]:
    """Return the processes in which UNKNOWN actions may still be at work; None if in none."""
    unknown = [a.uuid for a in plan.actions if a.state is ActionState.UNKNOWN]
    tried = {uuid: store.attempts(plan.uuid, uuid) for uuid in unknown}
    return {uuid: attempts[-1].left_in for uuid, attempts in tried.items() if attempts}


def is_found_there(action: Action, plugin: type[ActionPlugin]) -> bool:
    """Return whether only the machine that began an action can tell if it is still at work.

    It runs commands there, or another attempt cannot join its work.
    """
    given = action.input_parameters
    return None in plugin.runs_on(given) or not plugin.joins_work(given)


def _report(action: Action, state: ActionState, message: str) -> Report:
    reason = StateReason.ABORTED if state is ActionState.CANCELLED else None
    return Report(
        uuid=action.uuid, old=action.state, state=state, state_reason=reason, message=message
    )
