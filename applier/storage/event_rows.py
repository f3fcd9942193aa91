# SPDX-License-Identifier: Apache-2.0
"""Converts rows to events and subscriptions, and the reverse, without side effects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from applier.notifications import schema
from applier.storage.compiled import Row
from applier.storage.rows import reading, storable
from applier.subscriptions import DeadEvent, HeldBack, Subscription
from planner.errors import short

#: The longest reason why a delivery has failed, in letters.
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
    return schema.event(
        row["type"],
        row["plan"],
        number=row["number"],
        at=row["at"],
        data=data,
        action=row["action"],
    )


@reading
def subscription_of(row: Row) -> Subscription:
    """Return the subscription of a row."""
    held = {
        plan: HeldBack(**{**values, "since": datetime.fromisoformat(values["since"])})
        for plan, values in json.loads(row["held_back"]).items()
    }
    return Subscription(**{**row, "held_back": held})


def subscription_row(subscription: Subscription) -> dict[str, Any]:
    """Return the row of a subscription."""
    values = {name: getattr(subscription, name) for name in Subscription.__dataclass_fields__}
    return {**values, "held_back": _held_back(subscription.held_back)}


def delivery_values(subscription: Subscription) -> dict[str, Any]:
    """Return the bind parameters for writing what was delivered."""
    return {
        "named": subscription.name,
        "held_by": subscription.holder,
        "new_delivered": subscription.delivered,
        "new_held_back": _held_back(subscription.held_back),
        "new_trouble": _reason(subscription.trouble),
    }


def needed_from(subscription: Subscription) -> int:
    """Return the number of the first event that a receiver has not got."""
    held = (held.number for held in subscription.held_back.values())
    return min([subscription.delivered + 1, *held])


def dead_row(dead: DeadEvent) -> dict[str, Any]:
    """Return the row of an event that is given up."""
    return {
        "subscription": dead.subscription,
        "number": dead.event["number"],
        "event": json.dumps(dead.event),
        "why": _reason(dead.why),
        "at": dead.at,
    }


@reading
def dead_of(row: Row) -> DeadEvent:
    """Return the event of a row that was given up."""
    return DeadEvent(
        subscription=row["subscription"],
        event=json.loads(row["event"]),
        why=row["why"],
        at=row["at"],
    )


def _held_back(held: Mapping[str, HeldBack]) -> str:
    return json.dumps(
        {
            plan: {**asdict(one), "since": one.since.isoformat(), "why": _reason(one.why)}
            for plan, one in held.items()
        }
    )


def _reason(why: str | None) -> str | None:
    text = storable(why)
    return None if text is None else text[:_REASON]
