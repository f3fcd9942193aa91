# SPDX-License-Identifier: Apache-2.0
"""Predicts in which windows the actions of a plan start. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from applier.guarding.open_times import OpenTimes, OpenWindow
from applier.guarding.windows import NodeWork
from applier.scheduling import waiting
from applier.scheduling.concurrency import Concurrency
from applier.scheduling.course import drive
from applier.scheduling.scheduler import Scheduler
from applier.scheduling.verdict import ends
from planner.plan.model import Action

#: A prediction ends after so many windows.
MOST_NIGHTS = 1000


class Night(NamedTuple):
    """One window, the actions that start in it, in their order, and when the last of them ends."""

    interval: OpenWindow
    actions: Sequence[str]
    ends_at: datetime


class _Simulated:
    """Holds back the actions that would end after a window closes, at a simulated time."""

    def __init__(self, work: NodeWork, now: datetime) -> None:
        self.work, self.now, self.closes = work, now, now

    def set_clock(self, begin: datetime, seconds: float) -> None:
        self.now = begin + timedelta(seconds=seconds)

    def holds(self, action: Action, *, begins: bool) -> bool:
        return begins and self.now + timedelta(seconds=self.work.needed_s(action)) > self.closes

    def again_s(self) -> float | None:
        return None

    def ended(self) -> None:
        """Do nothing."""

    def tell(self, number: int) -> None:
        """Do nothing."""


def nights(
    actions: Sequence[Action],
    expected_s: Mapping[str, float],
    concurrency: Concurrency,
    ranks: Mapping[str, int],
    times: OpenTimes,
    now: datetime,
    *,
    most: int = MOST_NIGHTS,
) -> list[Night]:
    """Return the windows in which the actions of a plan start, in the order of time.

    ``expected_s`` is, by uuid, the seconds within which 9 in 10 such actions end. An action that
    fits into no window is left out, with all that need it. At most ``most`` windows are returned.
    """
    holding = _Simulated(NodeWork(actions, lambda action: expected_s[action.uuid]), now)
    after = waiting.links(actions, waiting.completed(actions, ends(actions)))
    scheduler = Scheduler(actions, after, concurrency, ranks=ranks, holding=holding)
    by_uuid = {action.uuid: action for action in actions}
    found: list[Night] = []
    opens = times.next(now)
    begun_at: datetime | None = None
    while opens is not None and len(found) < most:
        holding.now, holding.closes = max(holding.now, opens.start), opens.end
        decisions = scheduler.decide([], reopened=True) if begun_at else scheduler.begin()
        begun_at = holding.now
        made = drive(scheduler, decisions, expected_s, partial(holding.set_clock, begun_at))
        if made.start_s:
            found.append(Night(opens, list(made.start_s), holding.now))
        longest = times.longest_s(holding.now)
        left = [by_uuid[uuid] for uuid in scheduler.held]
        if not any(holding.work.needed_s(action) <= longest for action in left):
            break
        holding.now = opens.end
        opens = times.next(opens.end)
    return found
