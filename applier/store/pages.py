# SPDX-License-Identifier: Apache-2.0
"""Pages of plans and actions, and the keys by which they are sorted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from planner.plan.model import Action
from planner.plan.states import PlanState


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
