# SPDX-License-Identifier: Apache-2.0
"""The content of a timeline. Times are seconds from the beginning of the plan."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from planner.model import Action, ActionPlan
from planner.states import ActionState


class LaneKind(StrEnum):
    """What each lane of a timeline is."""

    NODE = "node"
    TYPE = "type"
    #: A worker on another machine that carried actions out.
    WORKER = "worker"


class TimeSpan(NamedTuple):
    """A time from a start to an end, which is not before the start."""

    start_s: float
    end_s: float


class Reason(StrEnum):
    """Why an action waits."""

    #: An action that must have ended well before it.
    NEED = "need"
    #: An action that must have ended before it, or that triggers it.
    ORDER = "order"
    #: A token that as many others hold as may.
    LIMIT = "limit"
    #: A worker: as many actions run as may run at once.
    WORKER = "worker"
    #: A resource that another plan has reserved.
    PLAN = "other plan"
    #: The next run of a plan that was paused, or that nobody ran.
    PAUSE = "pause"
    #: A window in which the action was expected to end.
    WINDOW = "window"
    #: Anything else, such as the delay before the next attempt.
    OTHER = "other"


class Wait(NamedTuple):
    """A time in which an action waited: for what kind of thing, and for which."""

    start_s: float
    end_s: float
    reason: Reason
    what: str


class Hold(NamedTuple):
    """A time in which no action of a plan could start, or none with a ``token``, and why."""

    start_s: float
    end_s: float
    reason: Reason
    what: str
    token: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One action, or several equal ones, between the first start and the last end.

    ``planned`` is when they should have run, None if the plan has not begun or did not foresee it.
    ``earlier`` are failed attempts before the last one, and ``waits`` the times before the start;
    a bar of several actions has those of the first that started.
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
    """A node, a resource, an action type or a worker, or several alike.

    The bars of a row never overlap.
    """

    title: str
    rows: tuple[tuple[Bar, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """The content of a timeline.

    ``began`` is None for a plan that has not begun, or that would last thousands of years. What is
    after ``now_s`` is expected, not known; it is None if nothing is open. ``span_s`` is the length
    of the time axis, and ``least_s`` the time that each bar takes at least, so that it can be seen.
    ``expected_s`` is how long the whole plan should take.
    """

    plan: ActionPlan
    lanes: tuple[Lane, ...]
    began: datetime | None
    now_s: float | None
    span_s: float
    least_s: float
    expected_s: float
