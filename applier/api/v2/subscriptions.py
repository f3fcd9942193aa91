# SPDX-License-Identifier: Apache-2.0
"""``/v2/subscriptions`` and ``/v2/dead-events``: who gets events, and which were given up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import falcon

from applier.api.parts import Parts, operator_of
from applier.api.v2 import schemas
from applier.api.v2.idempotency import once
from applier.api.v2.operation import Operation, Resource
from applier.errors import sound_part
from applier.notifications.schema import SCHEMA
from applier.store.subscriptions import DeadEvent, EventStore, Subscription, Trouble
from planner.errors import InvalidInput, Mistake, accepted

#: How many events are listed if the query has no ``limit``.
LISTED = 100
_COUNT: schemas.Schema = {"type": "integer", "minimum": 0}
_TROUBLE = schemas.mapping(
    {"number": _COUNT, "since": schemas.MOMENT, "tries": _COUNT, "why": schemas.TEXT}
)
_SUBSCRIPTION = schemas.mapping(
    {
        "name": schemas.TEXT,
        "until": schemas.MOMENT,
        "delivered": _COUNT,
        "waiting": _COUNT,
        "held_back": {"type": "object", "additionalProperties": _TROUBLE},
        "away": {"anyOf": [_TROUBLE, {"type": "null"}]},
    }
)
_DEAD = schemas.mapping(
    {
        "subscription": schemas.TEXT,
        "at": schemas.MOMENT,
        "why": schemas.TEXT,
        "event": {"oneOf": SCHEMA["oneOf"]},
    }
)


class SubscriptionsV2(Resource):
    """The subscriptions of the receivers and of the readers of events."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="event:read",
            summary="List who subscribes to events, and what each receiver has not got.",
            answer=schemas.list_of("subscriptions", _SUBSCRIPTION),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List subscriptions."""
        self.query(request)
        store = self._parts.assembly.store
        found, damaged = schemas.readable(store.subscriptions)
        response.media = {"subscriptions": [_of(s, store) for s in found], **damaged}


class RemovalV2(Resource):
    """The removal of a subscription."""

    OPERATIONS: Mapping[str, Operation] = {
        "POST": Operation(
            rule="event:administer",
            summary="Remove a subscription with what was given up for it. A receiver that is still "
            "configured subscribes again when its service starts.",
            body=schemas.mapping({"name": schemas.TEXT}),
            idempotency_key=True,
            answer=schemas.mapping({"messages": schemas.LINES}),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @once
    def on_post(self, request: falcon.Request, response: falcon.Response) -> None:
        """Remove a subscription; raises InvalidInput if there is none of this name."""
        self.query(request)
        name, store = self.body(request)["name"], self._parts.assembly.store
        history = operator_of(request, []).entry("event subscription remove", name)
        if not store.unsubscribe(name, history=history):
            subscriptions, _ = sound_part(store.subscriptions)
            known = accepted(name, [subscription.name for subscription in subscriptions])
            raise InvalidInput([Mistake(f"no such subscription; {known}", ("name",))])
        response.media = {"messages": [f"The subscription {name!r} is removed."]}


class DeadEventsV2(Resource):
    """The events that were given up."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="event:read",
            summary="List the latest events that could not be delivered in time, oldest first.",
            query={"limit": schemas.LIMIT},
            answer=schemas.list_of("events", _DEAD),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List events."""
        limit = self.query(request).get("limit", LISTED)
        store = self._parts.assembly.store
        found, damaged = schemas.readable(lambda: store.dead_events(limit=limit))
        response.media = {"events": [_dead(event) for event in found], **damaged}


def _of(subscription: Subscription, store: EventStore) -> dict[str, Any]:
    is_receiver = subscription.until is None
    return {
        "name": subscription.name,
        "until": None if is_receiver else _text(subscription.until),
        "delivered": subscription.delivered,
        "waiting": store.events_waiting(subscription) if is_receiver else 0,
        "held_back": {plan: _trouble(one) for plan, one in subscription.held_back.items()},
        "away": None if subscription.away is None else _trouble(subscription.away),
    }


def _trouble(trouble: Trouble) -> dict[str, Any]:
    return {**trouble._asdict(), "since": _text(trouble.since)}


def _dead(dead: DeadEvent) -> dict[str, Any]:
    return {**dead._asdict(), "at": _text(dead.at)}


def _text(at: Any) -> str:
    return str(at.isoformat())
