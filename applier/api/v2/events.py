# SPDX-License-Identifier: Apache-2.0
"""``/v2/events``: the events of plans, by long polling or as a stream."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import falcon

from applier.api.errors import Problem
from applier.api.parts import Parts
from applier.api.v2 import schemas
from applier.api.v2.feed import EventFeed
from applier.api.v2.operation import Operation, Resource
from applier.errors import DamagedRecord, StoreError
from applier.notifications.lines import line
from applier.notifications.schema import SCHEMA, Event
from applier.store.subscriptions import EventPage

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
#: The WSGI variable with the threading.Event that our server sets when it ends.
ENDING = "actionplan.ending"


class EventsV2(Resource):
    """The events of all plans."""

    OPERATIONS: Mapping[str, Operation] = {
        "GET": Operation(
            rule="event:read",
            summary="Return the events after a number, oldest first, or wait for one. With the "
            "header 'Accept: text/event-stream', they come as a stream. Events are recorded from "
            "the first such request on.",
            query={
                "after": _NUMBER,
                "plan": schemas.TEXT,
                "limit": schemas.LIMIT,
                "wait_s": {"type": "integer", "minimum": 0, "maximum": MOST_WAIT_S},
            },
            answer=schemas.mapping(
                {
                    "events": {"type": "array", "items": {"oneOf": SCHEMA["oneOf"]}},
                    "last": _NUMBER,
                    "newest": _NUMBER,
                }
            ),
        )
    }

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        keep_s = parts.assembly.conf.events.keep_s
        self._feed = EventFeed(lambda: parts.assembly.store, keep_s)

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Answer with the events after a number, or stream them if ``Accept`` has STREAM.

        If there are none and ``after`` is set, wait for one for up to ``wait_s`` seconds.
        """
        query = self.query(request)
        plan = query.get("plan")
        uuid = self._parts.assembly.store.find_plan(plan) if plan else None
        limit, ending = query.get("limit", LISTED), request.env.get(ENDING) or threading.Event()
        after, streams = query.get("after"), STREAM in (request.get_header("Accept") or "")
        if streams:
            after = _last_id(request) or after
        page = self._page(after, limit, uuid)
        if streams:
            response.content_type = STREAM
            response.set_header("X-Accel-Buffering", "no")
            response.stream = self._stream(page, limit, uuid, ending)
            return
        if not page.events and not page.damaged and after is not None:
            page = self._waited(page, limit, uuid, query.get("wait_s", WAIT_S), ending)
        response.media = {"events": page.events, "last": page.last, "newest": page.newest}
        response.media |= {"damaged": list(page.damaged)} if page.damaged else {}

    def _page(self, after: int | None, limit: int, plan: str | None) -> EventPage:
        """Return the events after a number; if it is None, from the oldest stored one on.

        Raises Problem: 410 if events after the number were deleted, 409 if there is no such number.
        """
        page = self._feed.page(after or 0, limit, plan)
        if after is not None and after < page.deleted:
            text = f"events up to number {page.deleted} were deleted, so some after {after} are"
            text += " missing: read the plans anew, and go on after that number"
            raise Problem(410, "Events were deleted", text)
        if after is not None and after > page.newest:
            text = f"the newest event has the number {page.newest}: {after} is of another record"
            raise Problem(409, "No such event", text)
        return page

    def _waited(
        self, page: EventPage, limit: int, plan: str | None, seconds: int, ending: threading.Event
    ) -> EventPage:
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
            while not (page.events or page.damaged) and self._feed.wait(
                page.last, _left(until), ending
            ):
                page = self._page(page.last, limit, plan)
        return page

    def _stream(
        self, page: EventPage, limit: int, plan: str | None, ending: threading.Event
    ) -> Iterator[bytes]:
        """Yield events as server-sent events, and a comment every BEAT_S seconds without one."""
        until = time.monotonic() + STREAM_S
        with self._feed.place() as taken:
            if not taken:
                yield b": too many readers\n\n"
                return
            yield f"retry: 2000\nid: {page.last if not page.events else _before(page)}\n\n".encode()
            while time.monotonic() < until and not ending.is_set():
                for text in page.damaged:
                    yield f": {' '.join(text.split())}\n\n".encode()
                for event in page.events:
                    yield _sent(event)
                try:
                    if len(page.events) < limit:
                        wait_s = min(BEAT_S, _left(until))
                        if not self._feed.wait(page.last, wait_s, ending):
                            yield b": \n\n"
                    page = self._page(page.last, limit, plan)
                except (StoreError, DamagedRecord, Problem):
                    return  # the reader connects again, and gets the error as a response


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _before(page: EventPage) -> int:
    """Return the number after which a page with events begins."""
    first: int = page.events[0]["number"]
    return first - 1


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
