# SPDX-License-Identifier: Apache-2.0
"""Becomes a program of the product on another machine: ``machine.py NAME FAULT PROGRAM WORD...``.

The machine is this one under another name, so that the record tells what runs where. ``FAULT``
names a fault that is planted into the program, or is ``none``.
"""

from __future__ import annotations

import socket
import sys
from importlib.metadata import entry_points

from applier.storage import worker_job_statements
from applier.storage.compiled import Deferred, word
from applier.store.worker_jobs import JobTask, WorkerJobState


def requeue() -> None:
    """Offer a job again whose lease ran out, to be run once more."""
    fence = worker_job_statements.FENCE
    todo, act = word(WorkerJobState.TODO), word(JobTask.ACT)
    worker_job_statements.FENCE = Deferred(lambda: fence().values(state=todo, task=act))


FAULTS = {"none": lambda: None, "requeue": requeue}


def main(name: str, fault: str, program: str, *words: str) -> None:
    """Plant the fault, and run the program in this process."""
    FAULTS[fault]()
    socket.gethostname = lambda: name
    sys.argv = [program, *words]
    (script,) = entry_points(group="console_scripts", name=program)
    sys.exit(script.load()())


if __name__ == "__main__":
    main(*sys.argv[1:])
