# SPDX-License-Identifier: Apache-2.0
"""A clock by which a time-out is reached once something has happened, and never before."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from applier.machines import following, remote_jobs

#: A time-out that no slow machine reaches.
HOUR_S = 3600.0


class Clock:
    """The clock, which goes an hour ahead once something is so."""

    def __init__(self, is_so: Callable[[], object]) -> None:
        self._is_so = is_so

    def monotonic(self) -> float:
        """Return what ``time.monotonic`` does, or an hour more."""
        return time.monotonic() + (HOUR_S if self._is_so() else 0.0)


def hurry(monkeypatch: pytest.MonkeyPatch, is_so: Callable[[], object]) -> None:
    """Let the time-outs of commands, here and on nodes, be over once something is so.

    A node then has as long as it needs to answer that it has ended a command.
    """
    monkeypatch.setattr(following, "time", Clock(is_so))
    monkeypatch.setattr(remote_jobs, "_ANSWER_S", HOUR_S)
