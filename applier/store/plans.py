# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that saves, finds and lists plans, and its values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypedDict, Unpack

from applier.contracts import HistoryEntry
from applier.store.runs import Attempt
from planner.model import ActionPlan
from planner.states import ActionState, PlanState


class PlanSummary(NamedTuple):
    """A row of ``actionplan list``: a plan without its actions, and their number in each state.

    Joins are not counted, because they do nothing. ``cloud`` is None for a plan that
    names none, ``creator`` (who made it) for one without a history of its creation. ``damage`` is
    the reason if the rows of the plan cannot be read. Only then ``state``, ``digest`` and other
    fields may be missing.
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
    damage: str | None = None


class PlanFilters(TypedDict, total=False):
    """Which plans are listed: those that pass all filters that are not None.

    Texts are compared exactly. ``since`` and ``until`` are about ``created_at``; ``until`` itself
    is left out.
    """

    state: PlanState | None
    name: str | None
    planner: str | None
    creator: str | None
    since: datetime | None
    until: datetime | None


#: The filters by the time at which a plan was made. With one of them, a list is sorted by it.
TIMES = ("since", "until")


def given(filters: PlanFilters) -> dict[str, Any]:
    """Return the filters that are not None, by name."""
    return {name: value for name, value in filters.items() if value is not None}


class PlanStore(Protocol):
    """The part of a store that saves, finds and lists plans."""

    def save_plan(self, plan: ActionPlan, *, history: HistoryEntry | None = None) -> None:
        """Save a new plan; after a crash, either the whole plan is saved or nothing.

        Raises PlanConflict if a plan of this uuid is saved already, InvalidPlan if two of its
        actions have the same uuid.
        """

    def find_plan(self, reference: str) -> str:
        """Return the uuid of the one plan that a reference matches; raises PlanNotFound.

        A reference is a uuid, a unique beginning of one with at least four characters, a unique
        name, or ``last`` for the plan saved last. Removed plans are found by whole uuids only.
        """

    def list_plans(
        self, *, limit: int | None = None, **filters: Unpack[PlanFilters]
    ) -> list[PlanSummary]:
        """List plans, the latest saved first; removed ones only if ``state`` is DELETED.

        With ``since`` or ``until``, the plans with the latest ``created_at`` come first. Damaged
        plans are listed with ``damage``. A damaged plan whose field cannot be read passes no filter
        on that field.
        """

    def count_plans(self, *, most: int | None = None, **filters: Unpack[PlanFilters]) -> int:
        """Return how many plans :meth:`list_plans` lists without a limit; at most ``most``."""

    def pending_plans(self) -> list[str]:
        """List the uuids of PENDING plans that may start now, the longest wait first."""

    def output(self, plan: str, action: str) -> str | None:
        """Return the output of the last attempt of an action, at most its last 64 KiB.

        None if the action has not been started, runs at present, or has no output. Raises
        ActionNotFound. The uuid of an action is unique within its plan only.
        """

    def all_attempts(self, plan: str, *, most: int) -> dict[str, list[Attempt]]:
        """Return the ended attempts of all actions of a plan by uuid of action, oldest first.

        Only the last ``most`` characters of each output are read. Raises PlanNotFound.
        """
