# SPDX-License-Identifier: Apache-2.0
"""The names of a job: of its folder, and of the mark in the environment of its processes."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote
from uuid import uuid4

#: The variable that marks all processes of a job.
VARIABLE = "ACTIONPLAN_JOB"
#: The folder of a job that belongs to no attempt, and ends with its applier, begins with this.
_UNNAMED = "unnamed"
#: The name of a folder that is being removed begins with this.
REMOVED = ".removed-"
#: The folder of a permit begins with this; see :mod:`applier.machines.attempt_jobs`.
_PERMIT = "permit"


class JobName(NamedTuple):
    """The name of a job.

    ``mark`` is PLAN/ACTION/ATTEMPT, by uuids; all processes of the job have it in their
    environment. ``folder`` adds the number of the command within the attempt, from 1, because an
    action may run several.
    """

    mark: str
    folder: str


class AttemptName(NamedTuple):
    """An attempt of an action, by the uuids of plan and action; ``attempt`` counts from 1."""

    plan: str
    action: str
    attempt: int

    @property
    def prefix(self) -> str:
        """The beginning of the folder of each of its jobs.

        >>> AttemptName("7f", "a/b", 2).prefix
        '7f.a%2Fb.2.'
        """
        return f"{_quoted(self.plan)}.{_quoted(self.action)}.{self.attempt}."

    def job(self, number: int) -> JobName:
        """Return the name of its command of that number, which counts from 1."""
        return JobName(f"{self.plan}/{self.action}/{self.attempt}", f"{self.prefix}{number}")

    def permit(self, boot: str) -> str:
        """Return the folder of its permit; ``boot`` is the boot id of the machine.

        >>> AttemptName("7f", "a/b", 2).permit("03c1")
        'permit.03c1.7f.a%2Fb.2'
        """
        return f"{_PERMIT}.{boot}.{self.prefix[:-1]}"


def unnamed() -> JobName:
    """Return a new name for a command that belongs to no attempt."""
    own = uuid4().hex
    return JobName(f"{_UNNAMED}/{own}", f"{_UNNAMED}.{own}")


def attempt_of(folder: str) -> AttemptName | None:
    """Return the attempt to which a folder belongs; None for an unnamed job and other folders.

    >>> attempt_of(AttemptName("7f", "a/b", 2).job(1).folder)
    AttemptName(plan='7f', action='a/b', attempt=2)
    >>> attempt_of(AttemptName("7f", "a", 2).permit("03c1"))
    AttemptName(plan='7f', action='a', attempt=2)
    """
    found = re.fullmatch(r"([^.]+)\.([^.]+)\.([0-9]+)\.[0-9]+", folder)
    found = found or re.fullmatch(rf"{_PERMIT}\.[^.]+\.([^.]+)\.([^.]+)\.([0-9]+)", folder)
    if found is None:
        return None
    return AttemptName(unquote(found[1]), unquote(found[2]), int(found[3]))


def mark_of(folder: str) -> str:
    """Return the mark of the processes of a job, by its folder.

    >>> mark_of("7f.a%2Fb.2.1"), mark_of("unnamed.5c")
    ('7f/a/b/2', 'unnamed/5c')
    """
    attempt = attempt_of(folder)
    return attempt.job(1).mark if attempt else folder.replace(".", "/", 1)


def is_job_or_permit(folder: str) -> bool:
    """Return whether a folder is that of a job or of a permit."""
    return attempt_of(folder) is not None or folder.startswith(f"{_UNNAMED}.")


def is_permit(folder: str) -> bool:
    """Return whether a folder is that of a permit."""
    return folder.startswith(f"{_PERMIT}.")


def _quoted(uuid: str) -> str:
    return quote(uuid, safe="").replace(".", "%2E")
