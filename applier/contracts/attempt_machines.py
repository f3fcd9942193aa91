# SPDX-License-Identifier: Apache-2.0
"""The interfaces of machines that know the commands of attempts, and find them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from applier.contracts.machines import Machines


class JobFound(Protocol):
    """A job that an attempt of an action left on a machine."""

    @property
    def age_s(self) -> float | None:
        """How long it has been running, in seconds; None if it does not run."""

    @property
    def is_lost(self) -> bool:
        """Whether it does not run, and its exit code will never be known."""

    @property
    def left(self) -> Sequence[int]:
        """The processes of a lost job that still run."""

    def __str__(self) -> str:
        """Return what is known of it: ``its command runs``, or how that ended."""


class AttemptMachines(Machines, Protocol):
    """The machines for one attempt of an action: its commands can be found again.

    The commands of an attempt are jobs: they outlive the applier. An applier that takes the attempt
    over runs the same commands in the same order; each that was started before is not started
    again, but followed from the beginning of its output.
    """

    #: Whether the commands belong to a precheck, which the next applier does not repeat: they are
    #: not named then, and cannot be found.
    is_prechecking: bool

    def permit(self) -> bool:
        """Let the attempt begin; return False if it could not be told from one that has begun."""

    def forbid(self, *, is_here: bool = False) -> bool:
        """Return whether the attempt has not begun and never will.

        ``is_here`` says that it may only begin with a permit on this machine. If nobody forbids
        it, an attempt begins with its first command, or with its first change of files by
        :class:`applier.contracts.Machine`.
        """

    def find(self, addresses: Sequence[str | None]) -> Sequence[JobFound]:
        """Return the last job that this attempt has left on each machine that has one.

        Raises ActionFailed or ConnectionError if a machine cannot be reached.
        """

    def end(self, addresses: Sequence[str | None]) -> None:
        """End the jobs of this attempt on these machines.

        Raises ActionFailed or ConnectionError if a machine cannot be reached.
        """

    def let_go(self) -> None:
        """From now on, a stop leaves the commands of this attempt running."""

    def forget(self) -> None:
        """Remove the jobs that this attempt has run, and its permit: its end is on record."""


class RunMachines(Machines, Protocol):
    """The machines of a run."""

    def of_attempt(self, plan: str, action: str, attempt: int) -> AttemptMachines:
        """Return these machines for one attempt of an action."""

    def close(self) -> None:
        """Close all connections; operations that still use one fail."""
