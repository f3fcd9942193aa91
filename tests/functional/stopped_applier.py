# SPDX-License-Identifier: Apache-2.0
"""Has a process of the program killed or held at one point of a start.

A held one goes on once there is a file ``let-it-go-on``, in whose place it makes ``held`` before.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from applier.engines.in_progress import AttemptsInProgress
from applier.machines.attempt_jobs import AttemptJobs
from applier.machines.local_jobs import LocalJob
from applier.machines.permit import Permit
from applier.run import runner

#: The points: an object, its function, and whether the point is after it.
POINTS: dict[str, tuple[Any, str, bool]] = {
    "the start is recorded": (AttemptsInProgress, "start", False),
    "its command is reached": (LocalJob, "_begin", False),
    "the command is about to begin": (AttemptJobs, "begin", False),
    "the permit is used": (Permit, "use", True),
    "interrupted actions were looked at": (runner, "verify_all", True),
}


def stop_at(point: str, stop: Callable[[], None]) -> None:
    """Let the program call ``stop`` at a point."""
    place, name, is_after = POINTS[point]
    real = getattr(place, name)

    def stopping(*args: Any, **named: Any) -> Any:
        if not is_after:
            stop()
        result = real(*args, **named)
        if is_after:
            stop()
        return result

    setattr(place, name, stopping)


def kill() -> None:
    """End at once, as by ``kill -9``."""
    os.kill(os.getpid(), signal.SIGKILL)


def hold() -> None:
    """Wait until it may go on."""
    Path("held").touch()
    while not Path("let-it-go-on").exists():
        time.sleep(0.01)
