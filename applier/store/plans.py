# SPDX-License-Identifier: Apache-2.0
"""Plans in lists and on pages, by filters and by reference, and overviews of plans."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict

from applier.errors import PlanNotFound
from planner.plan.model import Action, ActionPlan
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

    Texts are compared exactly. ``search`` is a part of the name, A to Z in capitals or not.
    ``since`` and ``until`` are about ``created_at``; ``until`` itself is left out. ``needs_you``
    lists plans that may wait for a person: they are paused or in doubt, or run, though their
    applier may be gone, or may lack some of the approvals that they demand or a site does, up to
    this number.
    """

    state: PlanState | None
    name: str | None
    search: str | None
    planner: str | None
    creator: str | None
    since: datetime | None
    until: datetime | None
    needs_you: int | None


#: The filters by the time at which a plan was made. With one of them, a list is sorted by it.
TIMES = ("since", "until")


def given(filters: Mapping[str, Any] | PlanFilters) -> dict[str, Any]:
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


class PlanKey(StrEnum):
    """The keys by which pages of plans can be sorted."""

    SAVED = "saved"
    UUID = "uuid"
    STATE = "state"
    MESSAGE = "message"
    AUDIT = "audit"
    STRATEGY = "strategy"
    EFFICACY = "efficacy"
    HOST = "host"
    CREATED = "created"
    UPDATED = "updated"


class ActionKey(StrEnum):
    """The keys by which pages of actions can be sorted."""

    SAVED = "saved"
    UUID = "uuid"
    PLAN = "plan"
    TYPE = "type"
    STATE = "state"
    MESSAGE = "message"
    PARENTS = "parents"
    CREATED = "created"
    UPDATED = "updated"


class Page(NamedTuple):
    """A part of a sorted list: at most ``limit`` rows, after the row with the uuid ``marker``.

    Without a marker, it is the beginning of the list. ``key`` is a :class:`PlanKey` or an
    :class:`ActionKey`. Rows that are equal in it are in the order in which they were saved, or the
    reverse if ``descending``.
    """

    limit: int
    key: str = "saved"
    descending: bool = False
    marker: str | None = None


class PlanHead(NamedTuple):
    """A plan without its actions; ``host`` is where it was run last.

    ``damage`` is the reason if the row cannot be read; then only ``uuid``, and ``state`` if it is a
    valid one, are set.
    """

    uuid: str
    state: PlanState | None
    status_message: str | None = None
    audit_uuid: str | None = None
    strategy_name: str | None = None
    efficacy_indicators: Sequence[Any] = ()
    global_efficacy: Sequence[Any] = ()
    host: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    damage: str | None = None


class PlannedAction(NamedTuple):
    """An action with the uuid, the state and the time of creation of its plan."""

    uuid: str
    plan: str
    plan_state: PlanState
    plan_created_at: datetime | None
    action: Action


#: A reference with fewer characters is compared with names only, not with beginnings of uuids.
SHORTEST_BEGINNING = 4
#: ``last`` or ``last~N``.
LAST_PLAN = re.compile("last(?:~([0-9]{1,9}))?")


def before_last(reference: str) -> int | None:
    """Return how many plans were saved after the one that ``last`` or ``last~N`` names.

    None for any other reference.

    >>> before_last("last"), before_last("last~1"), before_last("lasting")
    (0, 1, None)
    """
    found = LAST_PLAN.fullmatch(reference)
    return int(found[1] or 0) if found else None


def choose(reference: str, known: Collection[tuple[str, str | None]]) -> str:
    """Return the uuid of the plan that matches a reference; ``known`` are (uuid, name) pairs.

    An equal uuid is preferred. Otherwise exactly one plan must match by its name or by the
    beginning of its uuid. Raises PlanNotFound with the shortened uuids of all plans that match.

    >>> plans = [("6a1f-1", "web"), ("6a1f-2", None), ("77e0-3", "web-2")]
    >>> choose("77e0", plans), choose("web", plans), choose("6a1f-2", plans)
    ('77e0-3', '6a1f-1', '6a1f-2')
    >>> choose("6a1f", plans)
    Traceback (most recent call last):
    applier.errors.PlanNotFound: '6a1f' matches 2 plans: 6a1f-1, 6a1f-2
    """
    if any(uuid == reference for uuid, _ in known):
        return reference
    long_enough = len(reference) >= SHORTEST_BEGINNING
    fits = [
        uuid
        for uuid, name in known
        if name == reference or (long_enough and uuid.startswith(reference))
    ]
    if len(fits) != 1:
        raise PlanNotFound(reference, beginnings(fits))
    return fits[0]


def beginnings(uuids: Iterable[str]) -> list[str]:
    """Shorten uuids to eight characters, or to more if they are not distinct then; sorted."""
    whole = sorted(uuids)
    for length in range(8, max(map(len, whole), default=0)):
        short = [uuid[:length] for uuid in whole]
        if len(set(short)) == len(whole):
            return short
    return whole
