# SPDX-License-Identifier: Apache-2.0
"""The part of the interface of stores that lists plans and actions page by page, and its values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from planner.model import Action
from planner.states import PlanState


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
    """An action with the uuid, the state and the time of creation of its plan.

    ``action`` is None if its rows cannot be read; ``damage`` is then the reason.
    """

    uuid: str
    plan: str
    plan_state: PlanState | None = None
    plan_created_at: datetime | None = None
    action: Action | None = None
    damage: str | None = None


class PageStore(Protocol):
    """The part of a store that lists plans and actions page by page, without removed plans."""

    def plan_heads(
        self,
        page: Page,
        *,
        audit: str | None = None,
        strategy: str | None = None,
        state: PlanState | None = None,
    ) -> list[PlanHead]:
        """List a page of plans without their actions, including damaged ones.

        Raises PlanNotFound if no plan has the uuid of the marker. The marker may be a plan that was
        removed after it was listed.
        """

    def plan_head(self, uuid: str) -> PlanHead:
        """Return a plan without its actions, also if it is damaged.

        Raises PlanNotFound, also for a removed plan.
        """

    def planned_actions(
        self, page: Page, *, plan: str | None = None, audit: str | None = None
    ) -> list[PlannedAction]:
        """List a page of the actions of all plans, of one plan, or of the plans of an audit.

        Raises ActionNotFound if the marker is not the uuid of an action of ``plan``; without
        ``plan``, of any plan.
        """

    def planned_action(self, uuid: str) -> PlannedAction:
        """Return the action of this uuid; of several, that of the plan saved last.

        Raises ActionNotFound.
        """
