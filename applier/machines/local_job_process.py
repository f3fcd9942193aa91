# SPDX-License-Identifier: Apache-2.0
"""Wait for the end of the wrapper of a job on this machine."""

from __future__ import annotations

import os
import select
from contextlib import suppress


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
