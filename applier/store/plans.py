# SPDX-License-Identifier: Apache-2.0
"""Plans in lists, the filters of lists, and overviews of plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

from planner.plan.model import ActionPlan
from planner.plan.states import ActionState, PlanState


class PlanSummary(NamedTuple):
    """A row of ``actionplan list``: a plan without its actions, and their number in each state.

    Joins are not counted, because they do nothing. ``cloud`` is None for a plan that
    names none, ``creator`` (who made it) for one without a history of its creation. ``began_at``
    is when its last run began. ``approvals`` is how many approvals the plan demands by itself.
    ``damage`` is the reason if the rows of the plan cannot be read. Only then ``state``, ``digest``
    and other fields may be missing.
    """

    uuid: str
    name: str | None
    planner: str
    state: PlanState | None
    created_at: datetime | None
    updated_at: datetime | None
    actions: Mapping[ActionState, int]
    cloud: str | None = None
    digest: str | None = None
    creator: str | None = None
    start_at: datetime | None = None
    began_at: datetime | None = None
    approvals: int = 0
    damage: str | None = None


class PlanFilters(TypedDict, total=False):
    """Which plans are listed: those that pass all filters that are not None.

    Texts are compared exactly, except for ``search``: a part of the name, in capitals or not.
    ``since`` and ``until`` are about ``created_at``; ``until`` itself is left out. ``needs_you``
    lists plans that wait for a person: paused, in doubt, or to be approved by their own guards.
    """

    state: PlanState | None
    name: str | None
    search: str | None
    planner: str | None
    creator: str | None
    since: datetime | None
    until: datetime | None
    needs_you: bool | None


#: The filters by the time at which a plan was made. With one of them, a list is sorted by it.
TIMES = ("since", "until")


def given(filters: PlanFilters) -> dict[str, Any]:
    """Return the filters that are not None, by name."""
    return {name: value for name, value in filters.items() if value is not None}


class Wave(NamedTuple):
    """What the actions of a wave have in common: how many of each type, on which hosts, how long.

    ``hosts`` names the first ones, ``longest_s`` is the longest estimate.
    """

    number: int
    types: Mapping[str, int]
    hosts: str
    longest_s: float | None


class Overview(NamedTuple):
    """What is shown of a plan in place of its actions; joins are not counted.

    ``alone_s`` is the sum of the estimates, None if one is missing. ``touched`` is the number of
    resources by the kind of their tokens. ``outside`` are the action types that work outside a
    simulated cloud. ``shown`` are the first and the last waves, if there are many.
    """

    actions: int
    waves: int
    widest: int
    alone_s: float | None
    touched: Mapping[str, int]
    guarantees: Sequence[str]
    outside: Sequence[str]
    shown: Sequence[Wave]


class LongPlan(NamedTuple):
    """A plan with its overview, and of its actions only those that requests to it name.

    ``states`` is the number of actions in each state, by the number of their wave.
    """

    plan: ActionPlan
    overview: Overview
    states: Mapping[int, Mapping[str, int]]

    @property
    def has_begun(self) -> bool:
        """Whether any action is in another state than PENDING."""
        return any(set(states) != {"PENDING"} for states in self.states.values())


#: The overview of a plan is kept in the record if it has more actions than this.
LONG = 10_000
#: Computes the overview of a plan, and the number of the wave of each action.
OverviewOf = Callable[[ActionPlan], tuple[Overview, Mapping[str, int]]]


def overview_of(text: Any) -> Overview:
    """Return the overview of a plan from its JSON; raises ValueError."""
    try:
        known = json.loads(text)
        found = Overview(**known | {"shown": tuple(Wave(*wave) for wave in known["shown"])})
        numbers = [found.actions, found.waves, found.widest, *found.touched.values()]
        numbers += [n for wave in found.shown for n in (wave.number, *wave.types.values())]
        seconds = [found.alone_s, *(wave.longest_s for wave in found.shown)]
        texts = [*found.guarantees, *found.outside, *(wave.hosts for wave in found.shown)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as reason:
        raise ValueError("is not an overview") from reason
    are_numbers = all(type(number) is int for number in numbers)
    are_seconds = all(isinstance(one, int | float | None) for one in seconds)
    if not (all(isinstance(one, str) for one in texts) and are_numbers and are_seconds):
        raise ValueError("is not an overview")
    return found
