# SPDX-License-Identifier: Apache-2.0
"""The interfaces of machines, on which actions run programs and write files.

Also of what a running action receives to end early and to print. The commands of an attempt can be
found again on its machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from planner.plan.states import Outcome


class StopSignal(Protocol):
    """A signal that a running action has to end; ``threading.Event`` implements it."""

    def is_set(self) -> bool:
        """Return whether the action has to end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to ``timeout`` seconds (None: for ever) for it; return whether it is set."""


#: The type of the function that an action calls with the text that it prints.
Print = Callable[[str], None]


def silent(text: str) -> None:
    """Discard the printed text."""


class Ended(NamedTuple):
    """The result of a program.

    ``code`` is its exit code, or the negative number of the signal that ended it, or None if it
    could not be ended and still runs. ``why`` is the reason why it was interrupted: ``stop``,
    ``timeout`` or None. ``last_line`` is the last line of its output that is not blank.
    """

    code: int | None
    why: str | None
    seconds: float
    last_line: str


class Content(NamedTuple):
    """The content of a file, and its permissions, such as ``0o644``."""

    data: bytes
    mode: int


class Machine(Protocol):
    """A machine on which programs are run and files are written: this one, or one over SSH.

    It is opened for one attempt of an action, and observes its stop signal. All methods raise
    :class:`applier.errors.ActionFailed` with a sentence if they are refused or stopped, and
    ConnectionError if the connection to the machine is lost. A program that a stop has ended is no
    error: :meth:`run` returns its result.
    """

    def run(
        self,
        program: Sequence[str],
        *,
        output: Callable[[str], None],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Ended:
        """Run a program until it has ended; a stop or the time-out ends its process group.

        Its standard output and error are passed to ``output`` in pieces. Its input is empty.
        ``env`` is added to the environment. If it cannot be started, OSError or ValueError is
        raised, or the exit code is 126 or 127. If it was started and its end is not known,
        :class:`applier.errors.JobLost` is raised.
        """

    def read(self, path: str) -> Content | None:
        """Return content and permissions of a file; None if it does not exist."""

    def write(self, path: str, data: bytes, mode: int, folder_mode: int | None = None) -> None:
        """Replace a file, so that no reader sees half of it; create missing folders above it.

        If the folder of the file is created, it gets ``folder_mode``.
        """

    def files(self, folder: str) -> list[str]:
        """Return sorted relative paths of files and links below a folder; [] if it is missing."""

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""

    def rsync(self, path: str) -> tuple[list[str], str]:
        """Return options and destination with which an rsync of the applier writes to ``path``."""


class Machines(Protocol):
    """Opens the machines on which tasks run."""

    def machine(self, address: str | None, stop: StopSignal) -> Machine:
        """Return the machine at ``[user@]host[:port]``, or this machine for None."""

    def simulate(self, node: str, task: str, seconds: float, stop: StopSignal) -> Outcome:
        """Wait ``seconds`` of simulated time instead of running a task on a node; return CHANGED.

        Raises ActionFailed if the task is configured to fail, or is stopped.
        """


class JobFound(Protocol):
    """A job, which is a command of an attempt that outlives its applier, as found on a machine."""

    @property
    def age_s(self) -> float | None:
        """How long it has been running, in seconds; None if it does not run."""

    @property
    def is_running(self) -> bool:
        """Whether it runs, or processes of it that outlived its shell."""

    @property
    def is_lost(self) -> bool:
        """Whether it does not run, and its exit code will never be known."""

    @property
    def left(self) -> Sequence[int]:
        """The ids of the processes of a lost job that still run."""

    def __str__(self) -> str:
        """Return its state as a clause, such as ``its command has ended with exit code 1``."""


class AttemptMachines(Machines, Protocol):
    """The machines for one attempt of an action: its commands can be found again.

    The commands of an attempt are jobs: they outlive the applier. An applier that takes the attempt
    over runs the same commands in the same order; each that was started before is not started
    again, but followed from the beginning of its output.
    """

    #: True while a precheck runs: its commands cannot be found again, and need not be, because an
    #: applier that takes the attempt over does not repeat the precheck.
    is_prechecking: bool

    def permit(self) -> bool:
        """Write the permit with which the attempt may begin; return False if that is impossible.

        Without a permit, a later applier cannot prove that the attempt has not begun.
        """

    def withdraw_permit(self, *, is_here: bool = False) -> bool:
        """Withdraw the permit; return True if the attempt has not begun and never will.

        False means that it may have begun. ``is_here`` means that the permit can only be on this
        machine: without one there, the attempt has not begun. It begins with its first command, or
        with its first change of a file by :class:`applier.contracts.Machine`.
        """

    def find(self, addresses: Sequence[str | None]) -> Sequence[JobFound]:
        """Return the last job that this attempt has left on each machine that has one.

        Raises ActionFailed or ConnectionError if a machine cannot be reached, or if the job is
        where it cannot be followed.
        """

    def end(self, addresses: Sequence[str | None]) -> None:
        """End the jobs of this attempt on these machines.

        Raises ActionFailed or ConnectionError if a machine cannot be reached.
        """

    def let_go(self) -> None:
        """Leave the commands of this attempt running when its stop signal is set from now on."""

    def forget(self) -> None:
        """Remove the jobs and the permit of this attempt, whose end is on record."""


class RunMachines(Machines, Protocol):
    """The machines of a run."""

    def of_attempt(self, plan: str, action: str, attempt: int) -> AttemptMachines:
        """Return these machines for one attempt of an action."""

    def close(self) -> None:
        """Close all connections; operations that still use one fail."""
