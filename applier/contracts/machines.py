# SPDX-License-Identifier: Apache-2.0
"""The interfaces of machines, on which actions run programs and write files.

Also of what a running action receives to end early and to print.
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
