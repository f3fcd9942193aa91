# SPDX-License-Identifier: Apache-2.0
"""The machine on which the applier runs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from applier import whole_files
from applier.contracts import Content, Ended, Machine, StopSignal
from applier.errors import ActionFailed
from applier.machines import job_scripts
from applier.machines.attempt_jobs import AttemptJobs
from applier.machines.following import Tail
from applier.machines.local_jobs import LocalJob


class Local(Machine):
    """The machine on which the applier runs, for one attempt of an action.

    ``jobs`` names its commands, whose folders are in ``place``; without both, they cannot be found
    again, and are removed at their end. They run in the applier's own environment.
    """

    def __init__(
        self, stop: StopSignal, place: Path | None = None, jobs: AttemptJobs | None = None
    ) -> None:
        self._stop, self._place, self._jobs = stop, place, jobs or AttemptJobs()

    def run(
        self,
        program: Sequence[str],
        *,
        output: Callable[[str], None],
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_s: float | None = None,
    ) -> Ended:
        job_scripts.check(program, env or {}, cwd)
        given = program, Tail(output), {**os.environ, **(env or {})}, cwd, timeout_s
        if self._place is not None and self._jobs.attempt is not None:
            return LocalJob(self._place, self._stop, self._jobs).run(*given)
        with TemporaryDirectory(prefix="actionplan-", ignore_cleanup_errors=True) as folder:
            return LocalJob(Path(folder), self._stop, AttemptJobs()).run(*given)

    def read(self, path: str) -> Content | None:
        try:
            with open(path, "rb") as file:
                return Content(file.read(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))
        except FileNotFoundError:
            return None
        except OSError as reason:
            raise _refused(path, reason) from reason

    def write(self, path: str, data: bytes, mode: int, folder_mode: int | None = None) -> None:
        self._jobs.begin()
        try:
            folder = Path(path).parent
            if not folder.exists():
                folder.mkdir(parents=True, exist_ok=True)
                if folder_mode is not None:
                    folder.chmod(folder_mode)
            whole_files.write(path, data, mode)
        except OSError as reason:
            raise _refused(path, reason) from reason

    def files(self, folder: str) -> list[str]:
        found: list[str] = []
        for inside, folders, names in os.walk(folder, onerror=_raise):
            links = [name for name in folders if os.path.islink(os.path.join(inside, name))]
            found += [os.path.relpath(os.path.join(inside, n), folder) for n in (*names, *links)]
        return sorted(found)

    def remove(self, path: str) -> None:
        self._jobs.begin()
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as reason:
            raise _refused(path, reason) from reason

    def rsync(self, path: str) -> tuple[list[str], str]:
        return [], path


def _raise(reason: OSError) -> None:
    if not isinstance(reason, FileNotFoundError):
        raise _refused(str(reason.filename), reason) from reason


def _refused(path: str, reason: OSError) -> ActionFailed:
    return ActionFailed(f"{path}: {reason.strerror or reason}")
