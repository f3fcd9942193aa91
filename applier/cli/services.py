# SPDX-License-Identifier: Apache-2.0
"""Who runs plans and actions, and what is left of these: ``service``, ``worker``, ``job``."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from applier.assembly import now
from applier.cli.arguments import YES, argument
from applier.cli.session import Session
from applier.cli.verb import Columns, ListVerb, Rows, Verb, rows, shown_time
from applier.errors import ActionFailed, PlanNotFound
from applier.operations import services
from applier.run.liveness import is_gone
from applier.run.plan_cloud import SIMULATED
from applier.store import Service
from applier.store.worker_jobs import Worker
from applier.wording import ago, count, some
from planner.plan.states import ActionState, PlanState

if TYPE_CHECKING:
    from applier.machines.found_jobs import FoundJob
    from applier.machines.open_machines import OpenMachines
    from planner.plan.model import ActionPlan


class ServiceList(ListVerb):
    """List the applier services that use this record, latest heartbeat first

    A killed service stays listed. If it ran on this host, it is shown as gone; otherwise check the
    age of its last heartbeat.
    """

    EXAMPLES = ("service list", "service list -f json")
    NOTHING = (
        "No applier service has reported on this record.\nTo run a plan here: actionplan apply"
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        whole, at = parsed_args.formatter != "table", now()
        found = self.session.store.services()
        columns: Columns = {
            "uuid": lambda s: s.uuid if whole else s.uuid[:8],
            "host": lambda s: s.host,
            "process": lambda s: s.pid,
            "user": lambda s: s.user,
            "plans": lambda s: s.plans,
            "started": lambda s: shown_time(s.started_at, whole=whole),
            "heard of": lambda s: s.heartbeat_at.isoformat() if whole else heard_of(s, at),
        }
        if whole or any(s.cloud != SIMULATED for s in found):
            columns["cloud"] = lambda s: s.cloud
        return rows(columns, found)


def heard_of(service: Service, at: datetime) -> str:
    """Return the age of a service's last heartbeat, and whether its process is gone."""
    return ago((at - service.heartbeat_at).total_seconds()) + ", gone" * is_gone(service)


#: How many queues and action types a table names.
_NAMED = 3


class WorkerList(ListVerb):
    """List the workers that use this record: queues, types, jobs, last report

    A killed worker stays listed. If it ran on this host, it is shown as gone; otherwise check how
    long ago it was heard of. 'running' is how many of its places are taken.
    """

    EXAMPLES = ("worker list", "worker list -f json")
    NOTHING = "No worker has reported on this record: actions run in the appliers themselves."

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        workers = self.session.store.workers()
        if parsed_args.formatter != "table":
            return _WHOLE, map(_whole, workers)
        columns = ("name", "queues", "types", "running", "heard of", "version")
        return columns, map(_short, workers)


class WorkerDrain(Verb):
    """Tell a worker to take no more jobs; it ends when it has none

    Other workers of its queues take what comes. To have its places back, start the worker again on
    its machine: it registers under a new name.
    """

    EXAMPLES = ("worker drain site-b-1.4711",)
    ARGUMENTS = (argument("NAME", "name of a worker (worker list shows them)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        services.drain(self.session, self.operator, parsed_args.name)
        return 0


_WHOLE = (
    *("name", "host", "process", "user", "version", "cloud", "queues", "types"),
    *("running", "places", "draining", "started", "silent_s"),
)


def _whole(worker: Worker) -> tuple[Any, ...]:
    started = worker.started_at
    return (
        *(worker.name, worker.host, worker.pid, worker.user, worker.version, worker.cloud or ""),
        *(list(worker.queues), list(worker.types), worker.running, worker.places),
        *(worker.draining, started.isoformat() if started else "", round(worker.silent_s, 1)),
    )


def _short(worker: Worker) -> tuple[Any, ...]:
    state = ", gone" if is_gone(worker) else ", draining" if worker.draining else ""
    return (
        worker.name,
        some(worker.queues, _NAMED),
        some(worker.types, _NAMED),
        f"{worker.running} of {worker.places}",
        ago(worker.silent_s) + state,
        worker.version,
    )


_HERE = "this machine"
ADDRESSES = argument(
    "ADDRESS",
    "a node to look at besides this machine: [user@]host[:port]",
    dest="addresses",
    nargs="*",
)


#: The last attempt of an action in one of these states may still be taken over.
_NEEDED = frozenset({ActionState.ONGOING, ActionState.UNKNOWN})


class Leftover(StrEnum):
    """Whether a job may be removed, as far as a record knows."""

    NO = "no"
    YES = "yes"
    #: The record does not have its plan: it was purged, or belongs to another record.
    UNKNOWN_PLAN = "unknown plan"


def leftover(job: FoundJob, plan: ActionPlan | None) -> Leftover:
    """Return whether a job may be removed: none of it runs, and no applier will search for it.

    ``plan`` is its plan as recorded; None if the record does not have it. The jobs of an attempt
    are needed until the end of the attempt is on record, and while the action is UNKNOWN. An
    attempt gets its permit before its start is on record: it is needed while the plan is ONGOING.
    """
    if job.is_running:
        return Leftover.NO
    attempt = job.attempt
    if attempt is None:
        return Leftover.YES
    if plan is None:
        return Leftover.UNKNOWN_PLAN
    for action in plan.actions:
        if action.uuid == attempt.action:
            if attempt.attempt > action.attempts:
                is_needed = plan.state is PlanState.ONGOING
            else:
                is_needed = attempt.attempt == action.attempts and action.state in _NEEDED
            return Leftover.NO if is_needed else Leftover.YES
    return Leftover.YES


class JobList(ListVerb):
    """List the commands that actions have left, running or ended

    A command is listed until the end of its attempt is on record. A leftover can be removed:
    nothing of it runs, and no applier needs it any more. If this record does not have its plan, it
    is a leftover of an unknown plan: the plan was purged, or another record has it and may need the
    command. Processes that go on although the shell of their command was killed are listed as well.
    """

    EXAMPLES = ("job list", "job list root@10.0.0.3", "job list -f json")
    NOTHING = "No commands are left on these machines."
    ARGUMENTS = (ADDRESSES,)

    def take_action(self, parsed_args: argparse.Namespace) -> Rows:
        with closing(self.session.machines()) as machines:
            found = _found(self.session, machines, parsed_args.addresses)
        short = parsed_args.formatter == "table"
        columns = ("machine", "plan", "action", "attempt", "state", "processes", "leftover")
        return columns, ((*job.row(short=short), job.processes, str(job.leftover)) for job in found)


class JobClean(Verb):
    """Remove the commands that are leftovers: their output and exit codes

    A command that still runs, or whose processes do, is never removed, nor one of an action whose
    end is not on record. Those of plans that this record does not have are removed only after a
    question: the plan was purged, or another record has it and may need them.
    """

    EXAMPLES = ("job clean", "job clean root@10.0.0.3 root@10.0.0.4 --yes")
    ARGUMENTS = (ADDRESSES, YES)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        addresses = parsed_args.addresses
        with closing(self.session.machines()) as machines:
            found = _found(self.session, machines, addresses)
            removed = [job for job in found if job.leftover is Leftover.YES]
            _remove(machines, addresses, removed)
            unknown = [job for job in found if job.leftover is Leftover.UNKNOWN_PLAN]
            if unknown and (parsed_args.yes or self._agrees_to_remove(unknown)):
                # Some may have begun while the question was open.
                again = _found(self.session, machines, addresses)
                unknown = [job for job in again if job in unknown]
                _remove(machines, addresses, unknown)
                removed += unknown
        for each in found:
            if each.processes:
                self.say(f"Kept on {each.where}: {each.job.folder}: {each.job}")
        kept = len(found) - len(removed)
        self.say(f"{count(len(removed), 'leftover')} removed, {kept} kept.")
        return 0

    def _agrees_to_remove(self, unknown: Sequence[_Listed]) -> bool:
        """Name the plans that this record does not have, and ask whether to remove their jobs."""
        for (where, uuid), number in Counter((job.where, job.plan_uuid) for job in unknown).items():
            self.say(f"On {where}: {count(number, 'leftover')} of the unknown plan {uuid}")
        text = (
            "This record does not have these plans. They were purged, or another record has them "
            "and may need what their commands have left. Remove it?"
        )
        is_agreed = self.agrees(text)
        if not is_agreed:
            self.say("These are kept. To remove them without a question, add --yes.")
        return is_agreed


class _Listed(NamedTuple):
    """A job on a machine, its plan if the record has it, and whether it is a leftover.

    ``address`` is None for this machine.
    """

    address: str | None
    job: FoundJob
    plan: ActionPlan | None
    leftover: Leftover

    @property
    def where(self) -> str:
        return self.address or _HERE

    @property
    def plan_uuid(self) -> str:
        """The uuid of the plan by the name of the job, empty if it belongs to no attempt."""
        return self.job.attempt.plan if self.job.attempt else ""

    @property
    def processes(self) -> str:
        return " ".join(map(str, self.job.left))

    def row(self, *, short: bool) -> tuple[Any, ...]:
        where, attempt = self.where, self.job.attempt
        state = f"{self.job.state}" if self.job.code is None else f"ended {self.job.code}"
        if attempt is None:
            return where, "-", "-", "-", state
        names = {a.uuid: a.label for a in self.plan.actions} if self.plan else {}
        plan = attempt.plan[:8] if short else attempt.plan
        return where, plan, names.get(attempt.action, attempt.action), attempt.attempt, state


def _found(session: Session, machines: OpenMachines, addresses: Sequence[str]) -> list[_Listed]:
    """Return the jobs of this machine and of the nodes at these addresses.

    Permits are included only if they are leftovers. Raises ActionFailed if a node is not reached.
    """
    from applier.machines.job_names import is_permit

    plans: dict[str, ActionPlan | None] = {}
    listed = []
    for address in [None, *addresses]:
        for job in _found_on(machines, address):
            uuid = job.attempt.plan if job.attempt else ""
            if uuid not in plans:
                plans[uuid] = _plan(session, uuid)
            found = leftover(job, plans[uuid])
            if found is not Leftover.NO or not is_permit(job.folder):
                listed.append(_Listed(address, job, plans[uuid], found))
    return listed


def _remove(machines: OpenMachines, addresses: Sequence[str], unneeded: Sequence[_Listed]) -> None:
    """Remove jobs of this machine and of the nodes at these addresses."""
    for address in [None, *addresses]:
        folders = [each.job.folder for each in unneeded if each.address == address]
        machines.remove(address, folders, wait=True)


def _found_on(machines: OpenMachines, address: str | None) -> list[FoundJob]:
    try:
        return machines.listed(address)
    except ConnectionError as reason:
        raise ActionFailed(str(reason)) from reason


def _plan(session: Session, uuid: str) -> ActionPlan | None:
    try:
        return session.store.load_plan(uuid) if uuid else None
    except PlanNotFound:
        return None
