# SPDX-License-Identifier: Apache-2.0
"""Converts rows to events and subscriptions, and the reverse, without side effects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from applier.notifications import schema
from applier.storage.dialects import Row
from applier.storage.rows import reading, storable
from applier.store.subscriptions import DeadEvent, Subscription, Trouble
from planner.errors import short

#: How many characters of the reason of a failed delivery are stored.
_REASON = 1000


@reading
def event_of(row: Row) -> schema.Event:
    """Return the event of a row, which also has the name and the type of its action."""
    data = json.loads(row["data"])
    if row["type"] == schema.ACTION_STATE:
        named = {
            "name": row["name"] or short(row["action"]),
            "action_type": row["action_type"] or "",
        }
        data = {**named, "old": row["old"], **data}
    event = schema.event(
        row["type"],
        row["plan"],
        number=row["number"],
        at=row["at"],
        data=data,
        action=row["action"],
    )
    schema.require_form(event)
    return event


@reading
def subscription_of(row: Row) -> Subscription:
    """Return the subscription of a row."""
    held = {plan: _trouble_of(values) for plan, values in json.loads(row["held_back"]).items()}
    away = _trouble_of(json.loads(row["away"])) if row["away"] else None
    return Subscription(**{**row, "held_back": held, "away": away})


def subscription_row(subscription: Subscription) -> dict[str, Any]:
    """Return the row of a subscription."""
    values = {name: getattr(subscription, name) for name in Subscription._fields}
    return {**values, **_troubles(subscription)}


def delivery_values(subscription: Subscription) -> dict[str, Any]:
    """Return the bind parameters for writing the progress of a delivery."""
    return {
        "named": subscription.name,
        "held_by": subscription.holder,
        "new_delivered": subscription.delivered,
        **{f"new_{name}": text for name, text in _troubles(subscription).items()},
    }


def needed_from(subscription: Subscription) -> int:
    """Return the number of the first event that was not delivered to a receiver."""
    held = (held.number for held in subscription.held_back.values())
    return min([subscription.delivered + 1, *held])


def dead_row(dead: DeadEvent) -> dict[str, Any]:
    """Return the row of a dead event."""
    return {
        "subscription": dead.subscription,
        "number": dead.event["number"],
        "event": json.dumps(dead.event),
        "why": _reason(dead.why),
        "at": dead.at,
    }


@reading
def dead_of(row: Row) -> DeadEvent:
    """Return the dead event of a row."""
    event = json.loads(row["event"])
    schema.require_form(event)
    return DeadEvent(
        subscription=row["subscription"],
        event=event,
        why=row["why"],
        at=row["at"],
    )


def _troubles(subscription: Subscription) -> dict[str, str | None]:
    held = {plan: _trouble_row(one) for plan, one in subscription.held_back.items()}
    away = None if subscription.away is None else json.dumps(_trouble_row(subscription.away))
    return {"held_back": json.dumps(held), "away": away}


def _trouble_row(trouble: Trouble) -> dict[str, Any]:
    why = _reason(trouble.why)
    return {**trouble._asdict(), "since": trouble.since.isoformat(), "why": why}


def _trouble_of(values: Mapping[str, Any]) -> Trouble:
    return Trouble(**{**values, "since": datetime.fromisoformat(values["since"])})


def _reason(why: str | None) -> str | None:
    text = storable(why)
    return None if text is None else text[:_REASON]
