# SPDX-License-Identifier: Apache-2.0
"""The machines on which tasks run: this one, one reached over SSH, or a simulated one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from applier.contracts import Machine, Machines, StopSignal
from applier.errors import ActionFailed
from applier.extras import MissingExtra
from applier.machines import address as addresses
from applier.machines import found_jobs, local_jobs
from applier.machines.address import SshSettings
from applier.machines.attempt_jobs import AttemptJobs, Permit, boot_id, origin
from applier.machines.following import GRACE_S
from applier.machines.found_jobs import FoundJob, JobState, parse
from applier.machines.job_names import AttemptName, is_job_or_permit, mark_of
from applier.machines.job_scripts import ending, finding
from applier.machines.local_machine import Local
from applier.machines.simulated_nodes import NodeSimulation, SimulationSettings
from planner.plan.states import Outcome

if TYPE_CHECKING:
    from applier.machines.connections import Connections


class OpenMachines(Machines):
    """The machines of one run; a connection is made when it is first needed.

    A job is a command that goes on if the applier ends: see :mod:`applier.machines.job_scripts`.
    ``place`` is the folder of the jobs on this machine; without it, a later applier cannot find
    them. Raises ConfigurationError for invalid settings. :meth:`close` closes the connections.
    """

    def __init__(
        self,
        ssh: SshSettings | None = None,
        simulation: SimulationSettings | None = None,
        place: Path | None = None,
    ) -> None:
        self._ssh, self._place = ssh or SshSettings(), place
        self._simulation = NodeSimulation(simulation or SimulationSettings())
        #: The attempts of which jobs were found, each with the address of the machine.
        self.taken_over: set[tuple[str | None, AttemptName]] = set()
        self._lock = threading.Lock()
        self._connections: Connections | None = None
        # Before actions start: then a shortage of files breaks no run.
        boot_id()

    @property
    def origin(self) -> str:
        """Digits that identify the folder of jobs here, until the machine restarts."""
        return origin(self._place)

    def of_attempt(self, plan: str, action: str, attempt: int) -> AttemptMachines:
        """Return these machines for one attempt of an action."""
        return AttemptMachines(self, AttemptName(plan, action, attempt), self._place)

    def machine(
        self, address: str | None, stop: StopSignal, jobs: AttemptJobs | None = None
    ) -> Machine:
        """Return the machine at an address, or this machine for None; nothing connects yet.

        Raises ActionFailed if the address is invalid, or if asyncssh is not installed.
        """
        if address is None:
            return Local(stop, self._place, jobs)
        known = _parsed(address)
        connections = self._opened()
        from applier.machines.ssh_machine import Remote

        return Remote(connections, self._ssh, known, stop, jobs)

    def simulate(self, node: str, task: str, seconds: float, stop: StopSignal) -> Outcome:
        return self._simulation.run(node, task, seconds, stop)

    def find(self, address: str | None, prefix: str = "", mark: str = "") -> list[FoundJob]:
        """Return the jobs of a machine whose folders begin with a prefix.

        With a ``mark``, a job whose wrapper does not run has in ``left`` the processes that carry
        the mark. Raises ActionFailed or ConnectionError if the machine cannot be reached.
        """
        if address is None:
            return found_jobs.find(self._place, prefix, mark) if self._place else []
        shell = self._opened().shell(_parsed(address), finding(prefix, mark))
        return list(parse(shell.result()))

    def listed(self, address: str | None) -> list[FoundJob]:
        """Return all jobs of a machine, each with the processes that outlived its wrapper.

        Raises ActionFailed or ConnectionError if the machine cannot be reached.
        """
        jobs = [job for job in self.find(address) if is_job_or_permit(job.folder)]
        return [self._with_processes(address, job) if job.may_be_left else job for job in jobs]

    def _with_processes(self, address: str | None, job: FoundJob) -> FoundJob:
        alike = self.find(address, job.folder, mark_of(job.folder))
        return next((found for found in alike if found.folder == job.folder), job)

    def remove(self, address: str | None, folders: Sequence[str], *, wait: bool = False) -> None:
        """Remove jobs of a machine.

        Without ``wait``, those of a node are removed in the background. Folders that interrupted
        removals have left are removed as well, those on this machine only with ``wait``. With it,
        raises ActionFailed if a node cannot be reached.
        """
        if address is not None:
            if folders or wait:
                removal = self._opened().remove_jobs(_parsed(address), folders)
                try:
                    if wait:
                        removal.result()
                except ConnectionError as reason:
                    raise ActionFailed(str(reason)) from reason
        elif self._place is not None:
            local_jobs.remove([self._place / folder for folder in folders])
            if wait:
                local_jobs.sweep(self._place)

    def end(self, address: str | None, folder: str, mark: str) -> None:
        """End the processes of a job: SIGTERM, and SIGKILL after GRACE_S seconds; wait for that."""
        if address is not None:
            script = ending(folder, mark, GRACE_S)
            self._opened().shell(_parsed(address), script).result()
        elif self._place is not None:
            local_jobs.end(self._place / folder, mark)

    def close(self) -> None:
        """Close all connections; operations that still use one fail."""
        with self._lock:
            if self._connections is not None:
                self._connections.close()
                self._connections = None

    def _opened(self) -> Connections:
        with self._lock:
            if self._connections is None:
                try:
                    # asyncssh takes as long to import as the rest of the applier.
                    from applier.machines.connections import Connections
                except ImportError as reason:
                    missing = MissingExtra("a node that is reached over SSH", "ssh")
                    raise ActionFailed(f"{missing} ({reason})") from reason
                self._connections = Connections(self._ssh)
            return self._connections


class AttemptMachines(Machines):
    """The machines of a run for one attempt of an action: its commands can be found again.

    They are jobs, named after the attempt. An applier that takes the attempt over runs the same
    commands in the same order; each that was started before is not started again, but followed from
    the beginning of its output.
    """

    def __init__(
        self, opened: OpenMachines, attempt: AttemptName, place: Path | None = None
    ) -> None:
        self._opened, self._attempt = opened, attempt
        self._permit = None if place is None else Permit(place, attempt)
        self._jobs: dict[str | None, AttemptJobs] = {}
        self._let_go = threading.Event()
        #: True while a precheck runs: its commands cannot be found again, and need not be, because
        #: an applier that takes the attempt over does not repeat the precheck.
        self.is_prechecking = False

    def machine(self, address: str | None, stop: StopSignal) -> Machine:
        if self.is_prechecking:
            return self._opened.machine(address, stop)
        is_taken_over = (address, self._attempt) in self._opened.taken_over
        made = AttemptJobs(self._attempt, self._let_go, self._permit, is_taken_over)
        jobs = self._jobs.setdefault(address, made)
        return self._opened.machine(address, stop, jobs)

    def simulate(self, node: str, task: str, seconds: float, stop: StopSignal) -> Outcome:
        return self._opened.simulate(node, task, seconds, stop)

    def permit(self) -> bool:
        """Write the permit with which the attempt may begin; return False if that is impossible.

        Without a permit, a later applier cannot prove that the attempt has not begun.
        """
        # In a run without a folder of jobs, there is no permit, and none is needed.
        return self._permit is None or self._permit.write()

    def withdraw_permit(self, *, is_here: bool = False) -> bool:
        """Withdraw the permit; return True if the attempt has not begun and never will.

        False means that it may have begun. ``is_here`` means that the permit can only be on this
        machine: without one there, the attempt has not begun. It begins with its first command, or
        with its first change of a file by :class:`applier.contracts.Machine`.
        """
        return self._permit is not None and self._permit.withdraw(is_here=is_here)

    def find(self, addresses: Sequence[str | None]) -> list[FoundJob]:
        """Return the last job that this attempt has left on each machine that has one.

        On these machines, the attempt is taken over from here on. Raises ActionFailed or
        ConnectionError if a machine cannot be reached, or if the job is where it cannot be
        followed.
        """
        last: dict[str | None, FoundJob] = {}
        for address, job in self._found(addresses):
            self._opened.taken_over.add((address, self._attempt))
            last[address] = max(last.get(address, job), job, key=lambda one: one.number)
        return list(last.values())

    def end(self, addresses: Sequence[str | None]) -> None:
        """End the jobs of this attempt on these machines; raises the errors of :meth:`find`."""
        for address, job in self._found(addresses):
            if job.is_running:
                self._opened.end(address, job.folder, self._attempt.job(1).mark)

    def _found(self, addresses: Sequence[str | None]) -> list[tuple[str | None, FoundJob]]:
        """Return the jobs of this attempt, each with its machine."""
        prefix, mark = self._attempt.prefix, self._attempt.job(1).mark
        every = dict.fromkeys(addresses)
        found = [(a, job) for a in every for job in self._opened.find(a, prefix, mark)]
        here = [(a, job) for a, job in found if job.state is not JobState.ELSEWHERE]
        for address, job in found if not here else ():
            raise ActionFailed(f"{address}: {job}")
        return here

    def let_go(self) -> None:
        """Leave the commands of this attempt running when its stop signal is set from now on."""
        self._let_go.set()

    def forget(self) -> None:
        """Remove the jobs and the permit of this attempt, whose end is on record."""
        for address, jobs in self._jobs.items():
            if jobs.names:
                self._opened.remove(address, [name.folder for name in jobs.names])
        if self._permit is not None:
            self._permit.remove()


def _parsed(address: str) -> addresses.Address:
    try:
        return addresses.parse(address)
    except ValueError as reason:
        raise ActionFailed(str(reason)) from reason
