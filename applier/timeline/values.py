# SPDX-License-Identifier: Apache-2.0
"""The content of a timeline. Times are seconds from the beginning of the plan."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from applier.wording import duration
from planner.plan.model import Action, ActionPlan
from planner.plan.states import ActionState


class LaneKind(StrEnum):
    """The kind of thing that each lane of a timeline stands for."""

    NODE = "node"
    TYPE = "type"
    #: A worker on another machine that carried actions out.
    WORKER = "worker"


class TimeSpan(NamedTuple):
    """An interval of time; its end is not before its start."""

    start_s: float
    end_s: float


class Reason(StrEnum):
    """Why an action waits."""

    #: An action that must have ended well before it.
    NEED = "need"
    #: An action that must have ended before it, or that triggers it.
    ORDER = "order"
    #: A token that as many actions hold as its limit allows.
    LIMIT = "limit"
    #: A worker: ``max_workers`` actions run already.
    WORKER = "worker"
    #: A resource that another plan has reserved.
    PLAN = "other plan"
    #: The next run of a plan that was paused, or that nobody ran.
    PAUSE = "pause"
    #: The next window: no window is open, or the action was not expected to end in it.
    WINDOW = "window"
    #: Anything else, such as the delay before the next attempt.
    OTHER = "other"


class Wait(NamedTuple):
    """A time in which an action waited; ``what`` is a text about what it waited for."""

    start_s: float
    end_s: float
    reason: Reason
    what: str

    @property
    def said(self) -> str:
        """How long it was, and for what."""
        return f"{duration(self.end_s - self.start_s)}, {self.reason}: {self.what}"


class Hold(NamedTuple):
    """A time in which no action of a plan, or none that needs the ``token`` if set, could start."""

    start_s: float
    end_s: float
    reason: Reason
    what: str
    token: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One action, or several equal ones, between the first start and the last end.

    ``planned`` is when they were expected to run before the first run of the plan; None if it has
    not begun, or if they were not expected to run. ``earlier`` are failed attempts before the last
    one; a bar of several actions has none. ``waits`` are the waits before the start, of several
    actions those of the first that started.
    """

    actions: tuple[Action, ...]
    name: str
    start_s: float
    end_s: float
    planned: TimeSpan | None = None
    waits: tuple[Wait, ...] = ()
    earlier: tuple[TimeSpan, ...] = ()
    is_critical: bool = False

    @property
    def state(self) -> ActionState:
        """The state that all its actions have."""
        return self.actions[0].state

    @property
    def first_s(self) -> float:
        """The start of its first attempt."""
        return min([self.start_s, *(attempt.start_s for attempt in self.earlier)])


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """The rows of one node, resource, action type or worker, or of several that are alike.

    The bars of a row do not overlap.
    """

    title: str
    rows: tuple[tuple[Bar, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """The content of a timeline.

    ``began`` is None for a plan that has not begun, or that would last thousands of years. Times
    after ``now_s`` are expected; it is None for a plan that has not begun, and if all actions have
    ended. ``span_s`` is the length of the time axis. A bar that takes less than ``least_s`` is
    drawn as if it took that long, so that it can be seen. ``expected_s`` is the expected makespan
    of the whole plan, ``taken`` the sentence about how long it ran.
    """

    plan: ActionPlan
    lanes: tuple[Lane, ...]
    began: datetime | None
    now_s: float | None
    span_s: float
    least_s: float
    expected_s: float
    taken: str

    @property
    def bars(self) -> list[Bar]:
        """All bars, lane by lane."""
        return [bar for lane in self.lanes for row in lane.rows for bar in row]
