# SPDX-License-Identifier: Apache-2.0
"""``actionplan job list | clean``: the commands that actions have left on machines."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from applier.cli.arguments import with_yes
from applier.cli.session import Session
from applier.cli.verb import ListVerb, Verb
from applier.errors import ActionFailed, PlanNotFound
from applier.wording import count

if TYPE_CHECKING:
    from applier.machines import OpenMachines
    from applier.machines.found_jobs import FoundJob
    from applier.run.leftover_jobs import Leftover
    from planner.model import ActionPlan

_HERE = "this machine"


class JobList(ListVerb):
    """List the commands that actions have left, running or ended

    A command is listed until the end of its attempt is on record. A leftover can be removed:
    nothing of it runs, and no applier needs it any more. If this record does not have its plan, it
    is a leftover of an unknown plan: the plan was purged, or another record has it and may need the
    command. Processes that go on although the shell of their command was killed are listed as well.
    """

    EXAMPLES = ("job list", "job list root@10.0.0.3", "job list -f json")
    NOTHING = "No commands are left on these machines."

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: the addresses of nodes."""
        return _with_addresses(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Return a row for each job."""
        with closing(self.session.assembly.machines()) as machines:
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

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: the addresses of nodes, and whether to ask."""
        return with_yes(_with_addresses(super().get_parser(prog_name)))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Remove the leftovers, and write how many were removed and kept; raises ActionFailed."""
        from applier.run.leftover_jobs import Leftover

        addresses = parsed_args.addresses
        with closing(self.session.assembly.machines()) as machines:
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
        from applier.machines.job_names import attempt_of

        attempt = attempt_of(self.job.folder)
        return attempt.plan if attempt else ""

    @property
    def processes(self) -> str:
        return " ".join(map(str, self.job.left))

    def row(self, *, short: bool) -> tuple[Any, ...]:
        from applier.machines.job_names import attempt_of

        where, attempt = self.where, attempt_of(self.job.folder)
        state = f"{self.job.state}" if self.job.code is None else f"ended {self.job.code}"
        if attempt is None:
            return where, "-", "-", "-", state
        names = {a.uuid: a.label for a in self.plan.actions} if self.plan else {}
        plan = attempt.plan[:8] if short else attempt.plan
        return where, plan, names.get(attempt.action, attempt.action), attempt.attempt, state


def _with_addresses(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument(
        "addresses",
        metavar="ADDRESS",
        nargs="*",
        help="a node to look at besides this machine: [user@]host[:port]",
    )
    return parser


def _found(session: Session, machines: OpenMachines, addresses: Sequence[str]) -> list[_Listed]:
    """Return the jobs of this machine and of the nodes at these addresses.

    Permits (see :mod:`applier.machines.permit`) are included only if they are leftovers. Raises
    ActionFailed if a node cannot be reached.
    """
    from applier.machines.job_names import attempt_of, is_permit
    from applier.run.leftover_jobs import Leftover, leftover

    plans: dict[str, ActionPlan | None] = {}
    listed = []
    for address in [None, *addresses]:
        for job in _found_on(machines, address):
            attempt = attempt_of(job.folder)
            uuid = attempt.plan if attempt else ""
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
