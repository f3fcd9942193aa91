# SPDX-License-Identifier: Apache-2.0
"""The machine on which the applier runs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from applier import whole_files
from applier.contracts import Content, Ended, StopSignal
from applier.errors import ActionFailed
from applier.machines import job_scripts, local_jobs
from applier.machines.attempt_jobs import AttemptJobs


class Local:
    """The machine on which the applier runs, for one attempt of an action.

    ``jobs`` names its commands, whose folders are in ``place``.
    """

    def __init__(
        self, stop: StopSignal, place: Path | None = None, jobs: AttemptJobs | None = None
    ) -> None:
        self._stop, self._place, self._jobs = stop, place, jobs

    def run(
        self,
        program: Sequence[str],
        *,
        output: Callable[[str], None],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Ended:
        """Run a program in the applier's own environment, extended by ``env``."""
        job_scripts.check(program, env or {}, cwd)
        return local_jobs.run(
            program,
            stop=self._stop,
            output=output,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            timeout_s=timeout_s,
            place=self._place,
            jobs=self._jobs,
        )

    def read(self, path: str) -> Content | None:
        """Return content and permissions of a file, or None if it does not exist."""
        try:
            with open(path, "rb") as file:
                return Content(file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        except FileNotFoundError:
            return None
        except OSError as reason:
            raise _refused(path, reason) from reason

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Replace a file as a whole, so that no reader sees half of it; a link is followed."""
        self._begin()
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            whole_files.write(path, data, mode)
        except OSError as reason:
            raise _refused(path, reason) from reason

    def files(self, folder: str) -> list[str]:
        """List the files below a folder, relative to it; links are not followed."""
        found: list[str] = []
        for inside, folders, names in os.walk(folder, onerror=_raise):
            links = [name for name in folders if os.path.islink(os.path.join(inside, name))]
            found += [os.path.relpath(os.path.join(inside, n), folder) for n in (*names, *links)]
        return sorted(found)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        self._begin()
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as reason:
            raise _refused(path, reason) from reason

    def rsync(self, path: str) -> tuple[list[str], str]:
        """Return no options and the path itself: the destination is on this machine."""
        return [], path

    def _begin(self) -> None:
        if self._jobs is not None:
            self._jobs.begin()


def _raise(reason: OSError) -> None:
    if not isinstance(reason, FileNotFoundError):
        raise _refused(str(reason.filename), reason) from reason


def _refused(path: str, reason: OSError) -> ActionFailed:
    return ActionFailed(f"{path}: {reason.strerror or reason}")
