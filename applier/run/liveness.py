# SPDX-License-Identifier: Apache-2.0
"""Decides whether the process that runs a plan is dead, for all services and verbs.

The clocks of hosts may be wrong and may jump, so the time in a heartbeat is never compared with a
clock. A claimant is watched instead: it is dead if its heartbeat stays the same for several
intervals.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from applier.contracts import Claimant
from applier.run.this_process import this_host
from applier.store import Service
from applier.store.worker_jobs import Worker
from applier.wording import duration

#: A claimant that misses this many of its heartbeats counts as dead.
MISSED_HEARTBEATS = 6
#: The longest time between two checks of one claimant, in seconds.
LOOK_S = 1.0


class Claims(Protocol):
    """The part of a store that returns the claimant of a plan."""

    def claimant(self, uuid: str) -> Claimant | None:
        """Return the claimant of a plan, or None if it has none."""


def is_gone(claimant: Claimant | Service | Worker) -> bool:
    """Return whether a claimant, service or worker ran on this host and its process has ended."""
    return claimant.host == this_host() and not _exists(claimant.pid)


def _exists(pid: int) -> bool:
    """Return whether a process has not ended; one that nobody has waited for yet has."""
    with suppress(OSError, IndexError):
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state not in (b"Z", b"X")
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it belongs to another user
    return True


def may_be_at_work(process: str, action: str) -> bool:
    """Return whether a process, ``HOST:PID``, may still be at work on an attempt of an action.

    Only a process that has ended, or whose thread has returned, is known not to be. Of a process
    on another host neither is known, whatever its heartbeats say: it may be frozen or cut off.

    >>> may_be_at_work("elsewhere:4711", "an-action"), may_be_at_work("unknown", "an-action")
    (True, True)
    >>> may_be_at_work(f"{this_host()}:{os.getpid()}", "an-action")
    False
    """
    host, _, number = process.rpartition(":")
    try:
        pid = int(number)
    except ValueError:  # nobody knows which process it was
        return True
    if host != this_host():
        return True
    if pid != os.getpid():
        return _exists(pid)
    # Whoever only asks which process is gone needs no engine, whose import takes long.
    from applier.engines.tasks import is_at_work_here

    return is_at_work_here(action)


class _Silence(NamedTuple):
    """How many heartbeats a claimant has missed, and when the last of them was counted."""

    missed: int
    at: float


class SilenceWatch:
    """Counts the heartbeats that claimants miss, each by the interval in its claim.

    A check of a claimant counts at most one missed heartbeat, however long ago the last check was:
    meanwhile the store may have been unreachable, or the watcher stopped. Claims are checked in
    rounds; the count of a claim that is not checked in a round is dropped.

    >>> now = [0.0]
    >>> watch = SilenceWatch(clock=lambda: now[0])
    >>> claimant = Claimant(host="elsewhere", pid=1, user="ann", heartbeat_interval_s=5.0)
    >>> for now[0] in range(0, 35, 5):
    ...     watch.begin_round()
    ...     dead = watch.is_dead("plan", claimant)
    >>> now[0], dead
    (30, True)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_round: dict[tuple[str, Claimant], _Silence] = {}
        self._this_round: dict[tuple[str, Claimant], _Silence] = {}

    def begin_round(self) -> None:
        """Begin a round, in which each claim is checked once."""
        self._last_round, self._this_round = self._this_round, {}

    def reset(self) -> None:
        """Restart all counts: no heartbeat can be written while the store is unreachable."""
        self._last_round, self._this_round = {}, {}

    def is_dead(self, plan: str, claimant: Claimant) -> bool:
        """Return whether a claimant missed MISSED_HEARTBEATS heartbeats, or its process is gone."""
        if is_gone(claimant):
            return True
        now = self._clock()
        silence = self._last_round.get((plan, claimant), _Silence(0, now))
        if now - silence.at >= claimant.heartbeat_interval_s:
            silence = _Silence(silence.missed + 1, now)
        self._this_round[plan, claimant] = silence
        return silence.missed >= MISSED_HEARTBEATS


def has_died(
    store: Claims,
    plan: str,
    claimant: Claimant,
    *,
    tell: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], object] = time.sleep,
) -> bool:
    """Wait until a claimant counts as dead; return False if its heartbeat or its claim changes.

    If it waits, ``tell`` is called before, once, with a sentence: whom it watches, and how long.
    """
    watch, interval_s, told = SilenceWatch(clock), claimant.heartbeat_interval_s, False
    while True:
        watch.begin_round()
        if watch.is_dead(plan, claimant):
            return True
        if not told:
            told = True
            tell(
                f"Process {claimant.pid} on {claimant.host} may be alive: waiting for its next "
                f"heartbeat, for up to {duration(MISSED_HEARTBEATS * interval_s)}; without one it "
                "counts as dead."
            )
        wait(min(interval_s, LOOK_S))
        if store.claimant(plan) != claimant:
            return False


def gone(claimant: Claimant) -> str:
    """Return the beginning of the message about a claimant that has died."""
    return f"process {claimant.pid} on {claimant.host}, which ran it, is gone"
