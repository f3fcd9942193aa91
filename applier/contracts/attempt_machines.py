# SPDX-License-Identifier: Apache-2.0
"""The interfaces of machines on which the commands of an attempt can be found again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from applier.contracts.machines import Machines


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
