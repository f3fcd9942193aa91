# SPDX-License-Identifier: Apache-2.0
"""The jobs of one attempt of an action on one machine."""

from __future__ import annotations

import threading
from itertools import count

from applier.machines.job_names import AttemptName, JobName
from applier.machines.permit import Permit

#: The reason in messages why a command is not started: the attempt has ended.
ENDED = "another applier has ended the action"
#: The message about a command that its applier leaves running.
LET_GO = "this applier let go of the command, which goes on"


class AttemptJobs:
    """Names the commands of an attempt on one machine, in the order in which they are run.

    An applier that takes the attempt over runs the same commands in the same order, and so finds
    each of them by its name. Once ``let_go`` is set, a stop leaves them running. The ``permit`` of
    the attempt is used before the first of them. ``is_taken_over`` says that jobs of the attempt
    were found on the machine. If the folder of the first is gone later, it was removed because the
    end of the attempt is on record.
    """

    def __init__(
        self,
        attempt: AttemptName,
        let_go: threading.Event,
        permit: Permit | None = None,
        is_taken_over: bool = False,
    ) -> None:
        self.attempt, self.let_go, self._permit = attempt, let_go, permit
        self.is_taken_over = is_taken_over
        self._numbers = count(1)
        self.names: list[JobName] = []

    def begin(self) -> None:
        """Use the permit of the attempt; raise ActionFailed if another applier has withdrawn it.

        May be repeated. Without a permit, do nothing.
        """
        if self._permit is not None:
            self._permit.use()

    def was_made_before(self, name: JobName) -> bool:
        """Return whether the folder of a command was made by another applier: it must not be made.

        It is there, or was removed because the end of the attempt is on record.
        """
        return self.is_taken_over and name.folder == self.first

    @property
    def first(self) -> str:
        """The folder of its first command, which is removed when its end is on record."""
        return self.attempt.job(1).folder

    def next(self) -> JobName:
        """Return the name of the next command."""
        name = self.attempt.job(next(self._numbers))
        self.names.append(name)
        return name
