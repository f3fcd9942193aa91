# SPDX-License-Identifier: Apache-2.0
"""``/v2/events``, by long polling or as a stream; who subscribes to events, and which are lost."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import falcon

from applier.api.endpoints import Call
from applier.api.errors import Problem
from applier.api.feed import ENDING, EventFeed
from applier.api.v2 import schemas
from applier.api.v2.operation import Operation
from applier.errors import DamagedRecord, StoreError
from applier.notifications.schema import Event, line
from applier.store.entries import EventPage
from planner.errors import InvalidInput, Mistake, accepted

STREAM = "text/event-stream"
#: The default of the query parameter ``limit``.
LISTED = 100
#: How many seconds a request waits for an event: the default and the maximum.
WAIT_S, MOST_WAIT_S = 30, 60
#: A stream without events sends a comment every BEAT_S seconds. It ends after STREAM_S seconds, so
#: that its reader connects again and is authenticated again.
BEAT_S, STREAM_S = 15.0, 600.0
#: The largest number of an event.
_MOST = 2**53 - 1
_NUMBER: Mapping[str, Any] = {"type": "integer", "minimum": 0, "maximum": _MOST}


@Operation(
    "GET /v2/events",
    "event:read",
    "events.list",
    query={
        "after": _NUMBER,
        "plan": schemas.TEXT,
        "limit": schemas.LIMIT,
        "wait_s": {"type": "integer", "minimum": 0, "maximum": MOST_WAIT_S},
    },
    answer=schemas.list_of(schemas.EVENT, last=_NUMBER, newest=_NUMBER),
)
def events(call: Call) -> dict[str, Any] | None:
    """Return the events after a number, oldest first, or wait for one. With the header 'Accept:
    text/event-stream', they come as a stream. Events are recorded from the first such request on.

    If there are none and ``after`` is set, one is awaited for up to ``wait_s`` seconds.
    """
    query, request = call.query, call.request
    plan = query.get("plan")
    uuid = call.store.find_plan(plan) if plan else None
    ending = request.env.get(ENDING) or threading.Event()
    reader = _Reader(call.parts.feed, query.get("limit", LISTED), uuid, ending)
    after, streams = query.get("after"), STREAM in (request.get_header("Accept") or "")
    if streams:
        after = _last_id(request) or after
    page = reader.page(after)
    if streams:
        call.response.content_type = STREAM
        call.response.set_header("X-Accel-Buffering", "no")
        call.response.stream = reader.stream(page)
        return None
    if not page.events and after is not None:
        page = reader.waited(page, query.get("wait_s", WAIT_S))
    return {"items": page.events, "last": page.last, "newest": page.newest}


class _Reader:
    """Reads pages of up to ``limit`` events, of one plan or of all, until ``ending`` is set."""

    def __init__(
        self, feed: EventFeed, limit: int, plan: str | None, ending: threading.Event
    ) -> None:
        self._feed, self._limit, self._plan, self._ending = feed, limit, plan, ending

    def page(self, after: int | None) -> EventPage:
        """Return the events after a number; if it is None, from the oldest stored one on.

        Raises Problem: 410 if events after the number were deleted, 409 if there is no such number.
        """
        page = self._feed.page(after or 0, self._limit, self._plan)
        if after is not None and after < page.deleted:
            text = f"events up to number {page.deleted} were deleted, so some after {after} are"
            text += " missing: read the plans anew, and go on after that number"
            raise Problem(410, "Events were deleted", text)
        if after is not None and after > page.newest:
            text = f"the newest event has the number {page.newest}: {after} is of another record"
            raise Problem(409, "No such event", text)
        return page

    def waited(self, page: EventPage, seconds: int) -> EventPage:
        """Wait for an event after a page; return the next page, which is empty if none came.

        Raises falcon.HTTPServiceUnavailable if too many requests wait.
        """
        until = time.monotonic() + seconds
        with self._feed.place() as taken:
            if not taken:
                text = "too many requests wait for events"
                raise falcon.HTTPServiceUnavailable(
                    title="Too many readers", description=text, retry_after=5
                )
            while not page.events and self._feed.wait(page.last, _left(until), self._ending):
                page = self.page(page.last)
        return page

    def stream(self, page: EventPage) -> Iterator[bytes]:
        """Yield events as server-sent events, and a comment every BEAT_S seconds without one."""
        until = time.monotonic() + STREAM_S
        with self._feed.place() as taken:
            if not taken:
                yield b": too many readers\n\n"
                return
            before = page.events[0]["number"] - 1 if page.events else page.last
            yield f"retry: 2000\nid: {before}\n\n".encode()
            while time.monotonic() < until and not self._ending.is_set():
                for event in page.events:
                    yield _sent(event)
                try:
                    if len(page.events) < self._limit:
                        wait_s = min(BEAT_S, _left(until))
                        if not self._feed.wait(page.last, wait_s, self._ending):
                            yield b": \n\n"
                    page = self.page(page.last)
                except (StoreError, DamagedRecord, Problem):
                    return  # the reader connects again, and gets the error as a response


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _sent(event: Event) -> bytes:
    """Return an event as a server-sent event.

    >>> _sent({"number": 7, "type": "plan.state"})
    b'id: 7\\nevent: plan.state\\ndata: {"number":7,"type":"plan.state"}\\n\\n'
    """
    head = f"id: {event['number']}\nevent: {event['type']}\n"
    return f"{head}data: {line(event)}\n\n".encode("ascii")


def _last_id(request: falcon.Request) -> int | None:
    """Return the number in the header Last-Event-ID of a browser that connects again, or None."""
    text = request.get_header("Last-Event-ID") or ""
    return int(text) if re.fullmatch("[0-9]{1,16}", text) else None


@Operation(
    "GET /v2/dead-events",
    "event:read",
    "events.dead",
    query={"limit": schemas.LIMIT},
    answer=schemas.list_of(schemas.DEAD_EVENT),
)
def dead_events(call: Call) -> dict[str, Any]:
    """List the latest events that could not be delivered in time, oldest first."""
    limit = call.query.get("limit", LISTED)
    return {"items": [schemas.as_json(event) for event in call.store.dead_events(limit=limit)]}


@Operation(
    "GET /v2/subscriptions",
    "event:read",
    "subscriptions.list",
    schemas.list_of(schemas.SUBSCRIPTION),
)
def subscriptions(call: Call) -> dict[str, Any]:
    """List who subscribes to events, and what each receiver has not got."""
    store, items = call.store, []
    for one in store.subscriptions():
        shown = schemas.as_json(one)
        del shown["holder"], shown["beats"]
        items.append({**shown, "waiting": store.events_waiting(one) if one.until is None else 0})
    return {"items": items}


@Operation(
    "POST /v2/subscriptions/remove",
    "event:administer",
    "subscriptions.remove",
    body=schemas.record("subscription_name", name=str),
    answer=schemas.TOLD,
)
def remove_subscription(call: Call) -> dict[str, Any]:
    """Remove a subscription with what was given up for it. A receiver that is still configured
    subscribes again when its service starts.

    Raises InvalidInput if there is none of this name.
    """
    name, store = call.body["name"], call.store
    history = call.operator.entry("event subscription remove", name)
    if not store.unsubscribe(name, history=history):
        known = accepted(name, [one.name for one in store.subscriptions()])
        raise InvalidInput([Mistake(f"no such subscription; {known}", ("name",))])
    return {"messages": [f"The subscription {name!r} is removed."]}
