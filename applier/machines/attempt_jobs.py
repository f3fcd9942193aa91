# SPDX-License-Identifier: Apache-2.0
"""The jobs of one attempt of an action on one machine."""

from __future__ import annotations

import threading
from itertools import count

from applier.machines.job_names import AttemptName, JobName

#: What is said of a command whose applier let it go on.
LET_GO = "this applier let go of the command, which goes on"


class AttemptJobs:
    """Names the commands of an attempt on one machine, in the order in which they are run.

    An applier that takes the attempt over runs the same commands in the same order, and so finds
    each of them. Once ``let_go`` is set, a stop leaves them running.
    """

    def __init__(self, attempt: AttemptName, let_go: threading.Event) -> None:
        self.attempt, self.let_go = attempt, let_go
        self._numbers = count(1)
        self.names: list[JobName] = []

    def next(self) -> JobName:
        """Return the name of the next command."""
        name = self.attempt.job(next(self._numbers))
        self.names.append(name)
        return name
