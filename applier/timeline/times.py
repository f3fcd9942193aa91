# SPDX-License-Identifier: Apache-2.0
"""Computes when each action ran, from the record, or when it is expected to run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from applier.scheduling.course import Timeline
from applier.store import Attempt
from applier.timeline.values import TimeSpan
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import OPEN, ActionState

#: The axis is at most so many times as long as the run, even if planned times are later: otherwise
#: the run would be too small to read.
FAR = 1.5
#: A timeline without actions.
NOTHING = Timeline(start_s={}, end_s={}, makespan_s=0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Times:
    """When the actions of a plan ran or will run, in seconds from the beginning of its first run.

    ``began`` is that beginning, None if there was none. Times after ``now_s`` are expected; it is
    None before the first run, and if all actions have ended. ``intervals`` has all actions but
    joins. An action that does not run has an empty interval: at its end, or at the expected end of
    the plan if it is still open. ``runs`` are the actions that ran or are expected to. ``planned``
    are the times that were expected before the first run, empty if the plan has not begun.
    ``earlier`` has, for actions that were retried, the attempts before the last one.
    """

    began: datetime | None
    now_s: float | None
    intervals: Mapping[str, TimeSpan]
    runs: frozenset[str]
    planned: Mapping[str, TimeSpan]
    earlier: Mapping[str, tuple[TimeSpan, ...]]

    @property
    def span_s(self) -> float:
        """The length of the time axis in seconds: to the last known, expected or planned end.

        A planned end counts only up to ``FAR`` times the last other end.
        """
        last = max([*(i.end_s for i in self.intervals.values()), self.now_s or 0.0])
        planned = max((i.end_s for i in self.planned.values()), default=0.0)
        return max(last, min(planned, FAR * last))


def began(
    plan: ActionPlan,
    attempts: Mapping[str, Sequence[Attempt]],
    first_run: datetime | None = None,
) -> datetime | None:
    """Return when the first run of a plan began, None if none has.

    That is the time of its first start, unless ``first_run`` is known and before it.
    """
    starts = [a.started_at for a in plan.actions if a.started_at is not None]
    starts += [first_run] if first_run is not None else []
    starts += [one.started_at for tried in attempts.values() for one in tried]
    return min(starts, default=None)


def times(
    plan: ActionPlan,
    *,
    now: datetime,
    expected: Timeline,
    planned: Timeline = NOTHING,
    attempts: Mapping[str, Sequence[Attempt]],
    first_run: datetime | None = None,
) -> Times:
    """Return recorded and expected times of a plan, in seconds from the beginning of its first run.

    ``expected`` is a forecast of the open actions from now on, ``planned`` the forecast of the
    whole plan before its first run. ``attempts`` has those of actions that were retried, by uuid.
    ``first_run`` is when the first run began, if that is known.
    """
    first = began(plan, attempts, first_run)
    actions = [a for a in plan.actions if a.action_type != JOIN]

    def seconds(moment: datetime) -> float:
        return 0.0 if first is None else max(0.0, (moment - first).total_seconds())

    is_open = any(a.state in OPEN for a in actions)
    now_s = seconds(now) if is_open and first is not None else None

    def interval(action: Action) -> TimeSpan:
        offset, uuid = now_s or 0.0, action.uuid
        end = offset + expected.end_s.get(uuid, 0.0)
        if action.started_at is not None:
            start = seconds(action.started_at)
            if action.state is not ActionState.ONGOING:
                end = start if action.ended_at is None else seconds(action.ended_at)
            return TimeSpan(start, max(start, end))
        if action.state not in OPEN:
            at = 0.0 if action.ended_at is None else seconds(action.ended_at)
            return TimeSpan(at, at)
        if uuid in expected.start_s:
            return TimeSpan(offset + expected.start_s[uuid], end)
        return TimeSpan(offset + expected.makespan_s, offset + expected.makespan_s)

    def earlier(action: Action) -> tuple[TimeSpan, ...]:
        return tuple(
            TimeSpan(seconds(one.started_at), max(map(seconds, (one.started_at, one.ended_at))))
            for one in attempts.get(action.uuid, ())
            if one.ended_at is not None
            and (action.started_at is None or one.started_at < action.started_at)
        )

    return Times(
        began=first,
        now_s=now_s,
        intervals={a.uuid: interval(a) for a in actions},
        runs=frozenset(
            a.uuid
            for a in actions
            if a.started_at is not None or (a.state in OPEN and a.uuid in expected.start_s)
        ),
        planned={u: TimeSpan(planned.start_s[u], planned.end_s[u]) for u in planned.start_s},
        earlier={a.uuid: found for a in actions if (found := earlier(a))},
    )
