# SPDX-License-Identifier: Apache-2.0
"""Waits for new events: one thread polls the database for all requests that wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from applier.errors import DamagedRecord, StoreError, sound_part
from applier.operations import events
from applier.store.subscriptions import EventPage, EventStore

LOG = logging.getLogger(__name__)

#: Seconds between two polls of the database while a request waits.
POLL_S = 0.25
#: Seconds between two renewals of the subscription of readers, and two deletions of old events.
RENEW_S = 60.0
#: How many requests may wait at once; the other threads of the server answer other requests.
MOST_WAITING = 200
_AFTER_ALL = 2**62


class EventFeed:
    """Reads events for requests, and blocks requests until there are new events.

    Events are recorded only while somebody subscribes. All requests share one subscription: it
    begins with the first request, and ends about ``keep_s`` seconds after the last one.
    """

    def __init__(self, store: Callable[[], EventStore], keep_s: float) -> None:
        self._store, self._keep_s = store, keep_s
        self._renewing, self._renew_at = threading.Lock(), 0.0
        self._places = threading.BoundedSemaphore(MOST_WAITING)
        self._changed = threading.Condition()
        self._newest, self._waiting = 0, 0
        self._looks = False
        self._endings: set[threading.Event] = set()
        #: Never set: waiting for it is the pause between two polls.
        self._pause = threading.Event()

    def page(self, after: int, limit: int, plan: str | None = None) -> EventPage:
        """Return up to ``limit`` events after a number, oldest first; renew the subscription.

        Damaged events are left out, and named in the page.
        """
        self._renew()
        page, damaged = sound_part(lambda: self._store().events(after, limit=limit, plan=plan))
        return page._replace(damaged=tuple(map(str, damaged)))

    def newest(self) -> int:
        """Return the number of the newest event; renew the subscription."""
        return self.page(_AFTER_ALL, 1).newest

    def _renew(self) -> None:
        with self._renewing:
            if time.monotonic() < self._renew_at:
                return
            now, store = datetime.now(UTC), self._store()
            events.read_on(store, now=now, keep_s=self._keep_s)
            try:
                events.forget(store, now=now, keep_s=self._keep_s)
            except DamagedRecord as reason:
                LOG.warning("Old events could not be deleted: %s", reason)
            self._renew_at = time.monotonic() + min(RENEW_S, self._keep_s / 2)

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Take one of MOST_WAITING places for the ``with`` block; yield False if none is free."""
        taken = self._places.acquire(blocking=False)
        try:
            yield taken
        finally:
            if taken:
                self._places.release()

    def wait(self, after: int, seconds: float, ending: threading.Event) -> bool:
        """Block until there is an event after a number, of any plan; return False if there is none.

        It returns after ``seconds``, or soon after ``ending`` is set, because the server ends.
        """
        with self._changed:
            self._waiting += 1
            self._endings.add(ending)
            if not self._looks:
                self._looks = True
                threading.Thread(target=self._look, name="events", daemon=True).start()
            try:
                self._changed.wait_for(lambda: self._newest > after or ending.is_set(), seconds)
                return self._newest > after
            finally:
                self._waiting -= 1

    def _look(self) -> None:
        """Poll the number of the newest event while a request waits; wake all if it is new."""
        while True:
            try:
                newest = self._store().events(_AFTER_ALL, limit=1).newest
            except (StoreError, DamagedRecord):
                newest = self._newest  # the requests continue to wait until their time is over
            with self._changed:
                if newest != self._newest or any(ending.is_set() for ending in self._endings):
                    self._newest = newest
                    self._changed.notify_all()
                if self._waiting == 0:
                    self._looks = False
                    self._endings.clear()
                    return
            self._pause.wait(POLL_S)
