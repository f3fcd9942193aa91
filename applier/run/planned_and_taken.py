# SPDX-License-Identifier: Apache-2.0
"""Compares how long actions were expected to take with how long they took. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from applier.wording import seconds_between
from planner.plan.model import Action
from planner.plan.states import ActionState


class PlannedAndTaken(NamedTuple):
    """The sums for the actions of one type: how many, planned and taken seconds."""

    actions: int
    planned_s: float
    taken_s: float

    @property
    def error(self) -> float | None:
        """The difference as a share of the planned seconds; None if nothing was planned.

        >>> PlannedAndTaken(2, 100.0, 125.0).error
        0.25
        """
        return (self.taken_s - self.planned_s) / self.planned_s if self.planned_s else None


def by_type(
    actions: Iterable[Action], planned_s: Mapping[str, float]
) -> dict[str, PlannedAndTaken]:
    """Compare planned and taken durations by action type, in the order of the types' names.

    Only actions count that SUCCEEDED and have a planned duration (by uuid) and both times; the time
    that an action took is that of its last attempt.
    """
    found: defaultdict[str, PlannedAndTaken] = defaultdict(lambda: PlannedAndTaken(0, 0.0, 0.0))
    for a in actions:
        if a.uuid not in planned_s or a.state is not ActionState.SUCCEEDED:
            continue
        taken_s = seconds_between(a.started_at, a.ended_at)
        if taken_s is None:
            continue
        number, planned, taken = found[a.action_type]
        found[a.action_type] = PlannedAndTaken(
            number + 1, planned + planned_s[a.uuid], taken + taken_s
        )
    return dict(sorted(found.items()))
