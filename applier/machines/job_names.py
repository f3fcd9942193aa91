# SPDX-License-Identifier: Apache-2.0
"""The names of jobs: of the folder of each, and of the mark in the environment of its processes."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote
from uuid import uuid4

#: The variable that marks all processes of a job.
VARIABLE = "ACTIONPLAN_JOB"
#: The begin of the folder of a job that belongs to no attempt, and ends with its applier.
_UNNAMED = "unnamed"


class JobName(NamedTuple):
    """The name of a job.

    ``mark`` is PLAN/ACTION/ATTEMPT, by uuids. ``folder`` adds the number of the command within the
    attempt, from 1, because an action may run several.
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
        """Return the begin of the folders of its jobs.

        >>> AttemptName("7f", "a/b", 2).prefix
        '7f.a%2Fb.2.'
        """
        return f"{_quoted(self.plan)}.{_quoted(self.action)}.{self.attempt}."

    def job(self, number: int) -> JobName:
        """Return the name of its command of that number."""
        return JobName(f"{self.plan}/{self.action}/{self.attempt}", f"{self.prefix}{number}")


def unnamed() -> JobName:
    """Return a new name for a command that belongs to no attempt."""
    own = uuid4().hex
    return JobName(f"{_UNNAMED}/{own}", f"{_UNNAMED}.{own}")


def attempt_of(folder: str) -> AttemptName | None:
    """Return the attempt to which a folder belongs; None for an unnamed job and other folders.

    >>> attempt_of(AttemptName("7f", "a/b", 2).job(1).folder)
    AttemptName(plan='7f', action='a/b', attempt=2)
    """
    found = re.fullmatch(r"([^.]+)\.([^.]+)\.([0-9]+)\.[0-9]+", folder)
    if found is None:
        return None
    return AttemptName(unquote(found[1]), unquote(found[2]), int(found[3]))


def is_job(folder: str) -> bool:
    """Return whether a folder is that of a job."""
    return attempt_of(folder) is not None or folder.startswith(f"{_UNNAMED}.")


def _quoted(uuid: str) -> str:
    return quote(uuid, safe="").replace(".", "%2E")
