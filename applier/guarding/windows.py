# SPDX-License-Identifier: Apache-2.0
"""Refuses a plan that does not fit into its windows, and describes what waits for one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from applier.errors import GuardRefusal
from applier.guarding.node_work import NodeWork
from applier.guarding.window_holding import awaited
from applier.wording import duration, one_line
from planner.errors import short
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import OPEN, ActionState, PlanState

if TYPE_CHECKING:
    from applier.guarding.open_times import OpenTimes


def require(
    plan: ActionPlan,
    times: OpenTimes | None,
    work: NodeWork,
    now: datetime,
    *,
    has_to_be_open: bool,
) -> None:
    """Raise GuardRefusal if an action, or all on a node, needs longer than the longest window.

    With ``has_to_be_open`` also if nothing could start now and end before the windows close. If
    ``times`` is None, there are no windows, and every plan is accepted.
    """
    if times is None:
        return
    longest = times.longest_s(now)
    for action in _left(plan):
        seconds = work.needed_s(action)
        if seconds > longest:
            what = action.label if not action.places else f"all on {action.places[0].member}"
            raise GuardRefusal(
                plan.uuid,
                f"{one_line(what)} of plan {short(plan.uuid)} is expected to take up to "
                f"{duration(seconds)}, and the longest window lasts {duration(longest)}: "
                f"{times.words}",
            )
    if has_to_be_open and not _may_begin(plan, times, work, now):
        text = awaited(times, times.opens_after(now))
        raise GuardRefusal(plan.uuid, f"plan {short(plan.uuid)} waits for {text}")


def _may_begin(plan: ActionPlan, times: OpenTimes, work: NodeWork, now: datetime) -> bool:
    """Return whether an action whose predecessors have ended would end in the open window.

    True at any time for a plan with ONGOING actions, which a dead applier has left, and for one
    with a node that has begun.
    """
    if any(action.state is ActionState.ONGOING for action in plan.actions):
        return True
    left = {action.uuid: action for action in plan.actions if action.state in OPEN}
    ready = [a for a in left.values() if left.keys().isdisjoint(a.before())]
    if any(work.goes_on(action) for action in ready):
        return True
    found = times.at(now)
    if found is None:
        return False
    left_s = (found.end - now).total_seconds()
    return not ready or any(a.action_type == JOIN or work.needed_s(a) <= left_s for a in ready)


def lines(plan: ActionPlan, times: OpenTimes | None, now: datetime) -> Iterator[str]:
    """Yield a line about the windows of a plan that is not over."""
    waits = (PlanState.RECOMMENDED, PlanState.PENDING, PlanState.ONGOING, PlanState.PAUSED)
    if times is not None and plan.state in waits:
        found = times.at(now)
        is_open = f"; open until {found.end:%Y-%m-%d %H:%M} UTC" if found else ""
        yield f"Window: {times.words}{is_open or _opens(times, now)}"


def _opens(times: OpenTimes, now: datetime) -> str:
    found = times.next(now)
    return f"; opens at {found.start:%Y-%m-%d %H:%M} UTC" if found else "; never opens"


def waiting(action: Action, times: OpenTimes | None, work: NodeWork, now: datetime) -> str | None:
    """Return the window, in words, for which an action has to wait; None if it need not."""
    found = times.at(now) if times else None
    if times is None or work.goes_on(action):
        return None
    if found and work.needed_s(action) <= (found.end - now).total_seconds():
        return None
    return awaited(times, times.opens_after(now))


def _left(plan: ActionPlan) -> Iterator[Action]:
    for action in plan.actions:
        if action.action_type != JOIN and action.state is ActionState.PENDING:
            yield action
