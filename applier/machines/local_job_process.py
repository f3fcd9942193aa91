# SPDX-License-Identifier: Apache-2.0
"""The process of a job here: whether it can start, waits for a shortage, and waits for its end.

A shortage of this machine (of files, processes or memory) fails no action: what needs more waits.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from applier.backoff import delays_s
from applier.contracts import StopSignal
from applier.errors import shortage_in
from applier.machines import job_scripts

LOG = logging.getLogger(__name__)
Made = TypeVar("Made")

#: The seconds between two tries: the first, and the longest.
FIRST_S, LONGEST_S = 0.1, 2.0


def once_granted(make: Callable[[], Made], stop: StopSignal) -> Made:
    """Call a function again and again while it fails for a shortage; log that once.

    ``make`` must be able to go on where it failed. At a stop, the error is raised.
    """
    is_told = False
    for pause_s in delays_s(FIRST_S, LONGEST_S):
        try:
            return make()
        except OSError as reason:
            if shortage_in(reason) is None:
                raise
            if not is_told:
                LOG.warning("%s; a command waits until that is over", reason.strerror)
            is_told = True
            if stop.wait(pause_s):
                raise
    raise AssertionError  # the delays have no end


class Process:
    """Waits for the end of a process, which need not be a child; a pid of None has ended."""

    def __init__(self, pid: int | None) -> None:
        self._pid, self._handle = pid, -1

    def __enter__(self) -> Process:
        if self._pid is not None:
            with suppress(ProcessLookupError):
                self._handle = os.pidfd_open(self._pid)
        self._poll = select.poll()
        if self._handle >= 0:
            self._poll.register(self._handle, select.POLLIN)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle >= 0:
            os.close(self._handle)

    def has_ended(self, timeout_s: float) -> bool:
        """Wait up to ``timeout_s`` seconds; return whether it has ended."""
        return self._handle < 0 or bool(self._poll.poll(timeout_s * 1000))


def check_program(program: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
    """Raise the error that would be raised if the program were started directly."""
    job_scripts.check(program, {}, cwd)
    if cwd is not None and not os.path.isdir(cwd):
        os.stat(cwd)
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), cwd)
    name = program[0]
    if "/" not in name:
        if shutil.which(name, path=env.get("PATH", os.defpath)) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return
    path = os.path.join(cwd or "", name)
    os.stat(path)
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
