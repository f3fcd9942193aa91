# SPDX-License-Identifier: Apache-2.0
"""``actionplan job list | clean``: the commands that actions have left on machines."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from applier.cli.session import Session
from applier.cli.verb import ListVerb, Verb
from applier.errors import ActionFailed, PlanNotFound
from applier.wording import count

if TYPE_CHECKING:
    from applier.machines import OpenMachines
    from applier.machines.found_jobs import FoundJob
    from planner.model import ActionPlan

_HERE = "this machine"


class JobList(ListVerb):
    """List the commands that actions have left, running or ended

    A command is listed until the end of its attempt is on record. One that is a leftover can be
    removed: nothing of it runs, and nobody will look for it. Processes are listed that go on
    although the shell of their command was killed.
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
        return columns, (
            (*job.row(short=short), job.processes, "yes" if job.is_leftover else "no")
            for job in found
        )


class JobClean(Verb):
    """Remove the commands that are leftovers: their output and exit codes

    A command that still runs, or whose processes do, is never removed, nor one of an action whose
    end is not on record.
    """

    EXAMPLES = ("job clean", "job clean root@10.0.0.3 root@10.0.0.4")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: the addresses of nodes."""
        return _with_addresses(super().get_parser(prog_name))

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Remove the leftovers, and say how many there were."""
        with closing(self.session.assembly.machines()) as machines:
            found = _found(self.session, machines, parsed_args.addresses)
            for address in [None, *parsed_args.addresses]:
                folders = [j.job.folder for j in found if j.is_leftover and j.address == address]
                machines.remove(address, folders, wait=True)
        for each in found:
            if each.processes:
                self.say(f"Kept on {each.where}: {each.job.folder}: {each.job}")
        removed = sum(job.is_leftover for job in found)
        self.say(f"{count(removed, 'leftover')} removed, {len(found) - removed} kept.")
        return 0


class _Listed(NamedTuple):
    """A job on a machine, its plan if the record has it, and whether it is a leftover."""

    address: str | None
    job: FoundJob
    plan: ActionPlan | None
    is_leftover: bool

    @property
    def where(self) -> str:
        return self.address or _HERE

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
    """Return the jobs of this machine and of these nodes, and permits that are leftovers."""
    from applier.machines.job_names import attempt_of, is_permit
    from applier.run.leftover_jobs import is_leftover

    plans: dict[str, ActionPlan | None] = {}
    listed = []
    for address in [None, *addresses]:
        for job in _found_on(machines, address):
            attempt = attempt_of(job.folder)
            uuid = attempt.plan if attempt else ""
            if uuid not in plans:
                plans[uuid] = _plan(session, uuid)
            is_unneeded = is_leftover(job, plans[uuid])
            if is_unneeded or not is_permit(job.folder):
                listed.append(_Listed(address, job, plans[uuid], is_unneeded))
    return listed


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
