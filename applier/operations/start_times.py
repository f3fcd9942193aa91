# SPDX-License-Identifier: Apache-2.0
"""Computes when a started plan begins: at a time, or when a window opens in which it should end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from applier.assembly import Assembly, now
from applier.operations import Operator, who_runs
from applier.wording import duration
from planner.errors import InvalidInput, Mistake
from planner.plan.model import JOIN, ActionPlan
from planner.plan.states import OPEN

if TYPE_CHECKING:
    from applier.guarding.open_times import OpenTimes


def wanted(
    assembly: Assembly,
    operator: Operator,
    plan: ActionPlan,
    at: datetime | None,
    *,
    in_window: bool,
) -> datetime | None:
    """Return when a plan is to begin; None: as soon as possible.

    With ``in_window``, it is to begin in the first window in which it is expected to end, or else
    in the next window. Raises InvalidInput for a time that is over, for both a time and
    ``in_window``, and for ``in_window`` without windows.
    """
    if in_window:
        if at is not None:
            raise InvalidInput([Mistake("either a time or a window, not both", place="at")])
        return _in_a_window(assembly, operator, plan)
    if at is None:
        return None
    if at <= now():
        text = f"{at:%Y-%m-%d %H:%M:%S} UTC is over: it is {now():%Y-%m-%d %H:%M:%S} UTC"
        raise InvalidInput([Mistake(text, place="at")])
    return at


def _in_a_window(assembly: Assembly, operator: Operator, plan: ActionPlan) -> datetime | None:
    """Return when the first window opens in which a plan is expected to end; None: it is open now.

    If no window is long enough for all of it, that is when the next window opens. A plan is
    expected to end when each of its actions takes as long as 9 in 10 did.
    """
    times = assembly.open_times(plan)
    if times is None:
        text = "no window to start in: neither the plan nor [watcher_applier] has windows"
        raise InvalidInput([Mistake(text, place="in_window")])
    moment, failed_s = now(), 0.0
    for interval in times.intervals(moment):
        begin = max(moment, interval.start)
        left_s = (interval.end - begin).total_seconds()
        if left_s <= failed_s:
            continue
        if _ends_within(assembly, plan, times, begin):
            if begin > moment:
                return begin
            operator.say("It is expected to end in the window that is open now.")
            return None
        failed_s = left_s
    operator.say("No window is long enough for all of it: it goes on in the next ones.")
    return times.opens_after(moment)


def _ends_within(assembly: Assembly, plan: ActionPlan, times: OpenTimes, begin: datetime) -> bool:
    """Return whether a plan that begins in a window is expected to end in it."""
    from applier.guarding.nights import nights
    from applier.operations.predictions import concurrency_of, past_durations, predicted

    durations = past_durations(assembly).of(plan)
    ranks = predicted(assembly, plan, durations, assembly.max_workers).forecast.ranks
    concurrency = concurrency_of(assembly, plan, assembly.max_workers)
    found = nights(plan.actions, durations.cautious, concurrency, ranks, times, begin, most=1)
    left = sum(a.state in OPEN and a.action_type != JOIN for a in plan.actions)
    # The first window in which anything starts may be a later one.
    return all(night.interval.start <= begin for night in found) and left == sum(
        len(night.actions) for night in found
    )


def lines(plan: ActionPlan) -> Iterator[str]:
    """Yield a line about a plan that waits for a time."""
    if plan.start_at is not None:
        left_s = (plan.start_at - now()).total_seconds()
        soon = f"in {duration(round(left_s))}" if left_s > 0 else "now"
        when = f"{plan.start_at:%Y-%m-%d %H:%M:%S} UTC, {soon}"
        yield f"{who_runs.named(plan)} is {plan.state}, and starts at {when}, not before."
