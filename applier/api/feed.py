# SPDX-License-Identifier: Apache-2.0
"""What readers wait for: the events of plans, and the parts of their pages, read once for all."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from applier.assembly import Assembly, now
from applier.errors import DamagedRecord, PlanNotFound, StoreError
from applier.operations import approving
from applier.report import content, page
from applier.report.content import ReportContent
from applier.store import PlanSummary
from applier.store.entries import READERS, EventPage
from planner.plan.states import PlanState

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore

LOG = logging.getLogger(__name__)

#: Seconds between two polls of the database while a request waits.
POLL_S = 0.25
#: Seconds between two renewals of the subscription of readers, and two deletions of old events.
RENEW_S = 60.0
#: How many requests may wait at once; the other threads of the server answer other requests.
MOST_WAITING = 200
_AFTER_ALL = 2**62
#: The WSGI variable with the threading.Event that our server sets when it ends.
ENDING = "actionplan.ending"


class EventFeed:
    """Reads events for requests, and blocks requests until there are new events.

    Events are recorded only while somebody subscribes. All requests share one subscription: it
    begins with the first request, and ends about ``keep_s`` seconds after the last one.
    """

    def __init__(self, store: Callable[[], SqlStore], keep_s: float) -> None:
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
        """Return up to ``limit`` events after a number, oldest first; renew the subscription."""
        self._renew()
        return self._store().events(after, limit=limit, plan=plan)

    def newest(self) -> int:
        """Return the number of the newest event; renew the subscription."""
        return self.page(_AFTER_ALL, 1).newest

    def _renew(self) -> None:
        with self._renewing:
            if time.monotonic() < self._renew_at:
                return
            now, store, keep = datetime.now(UTC), self._store(), timedelta(seconds=self._keep_s)
            store.subscribe(READERS, now=now, until=now + keep)
            try:
                store.delete_events(before=now - keep, now=now)
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


#: The number of plans whose page is cached, and of versions of each page that are compared with the
#: latest one: a reader of an older version gets all parts.
MOST_PLANS, MOST_VERSIONS = 16, 8
#: Of how many listed plans it is known whether they lack approvals.
MOST_KNOWN = 10_000
#: The page of a running plan is rendered again after LEAST_S seconds at the earliest, and after
#: TIMES times the seconds that rendering it took; if nothing happened, after QUIET_S seconds,
#: because times on it change, and that of another plan after SURE_S, because events are not
#: recorded while nobody reads them.
LEAST_S, TIMES, QUIET_S, SURE_S = 0.5, 2.0, 5.0, 30.0
_RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)


class Rendering(NamedTuple):
    """A rendered page: ``parts`` are the HTML of its elements by id.

    ``version`` identifies their content. ``number`` is that of the newest event before the plan was
    read, after which a reader continues.
    """

    version: str
    number: int
    report: ReportContent
    parts: Mapping[str, str]


class _Kept:
    """The cached page of a plan, and when it may be rendered again (monotonic).

    ``again_at`` is for when something has happened since, ``quiet_until`` for when nothing has.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rendering: Rendering | None = None
        self.again_at = self.quiet_until = 0.0
        #: Hashes of the parts by version, the latest last.
        self.versions: dict[str, Mapping[str, bytes]] = {}


class LivePages:
    """Renders and caches the pages of plans, and keeps hashes of their latest versions."""

    def __init__(self, assembly: Assembly, feed: EventFeed) -> None:
        self._assembly, self._feed = assembly, feed
        self._plans: dict[str, _Kept] = {}
        self._lock = threading.Lock()
        # Versions of another process must not be taken for ours.
        self._prefix, self._numbers = uuid4().hex[:12], count(1)
        self._lacks = lru_cache(MOST_KNOWN)(self._lacks_approvals)

    def now(self, uuid: str) -> Rendering:
        """Return the page of a plan, rendered now or a moment ago; raises PlanNotFound.

        Blocks while another thread renders the page of the same plan.
        """
        kept = self._kept(uuid)
        with kept.lock:
            number, last = self._feed.newest(), kept.rendering
            if last is not None:
                is_same, moment = last.number == number, time.monotonic()
                if is_same and moment < kept.quiet_until:
                    return last
                if moment < kept.again_at:
                    return last
            return self._made(uuid, kept, number)

    def changed(self, rendering: Rendering, version: str) -> dict[str, str]:
        """Return the parts of a page, by id, that differ from those of an earlier version.

        All parts are returned for an unknown version. The part ``actions`` is always left out: it
        is the table around the rows, which are parts of their own.
        """
        versions = self._kept(rendering.report.plan.uuid).versions
        before, after = versions.get(version, {}), versions.get(rendering.version, {})
        return {
            name: html
            for name, html in rendering.parts.items()
            if name != "actions" and (name not in before or before[name] != after.get(name))
        }

    def lacks_approvals(self, plan: PlanSummary) -> bool:
        """Return whether a listed plan waits for approvals, as its page says.

        The plan is loaded if it may: what was found holds until it changes, for a minute at most.
        """
        demanded = plan.approvals or self._assembly.guard.most_approvals
        if plan.damage or plan.state not in approving.TO_APPROVE or not demanded:
            return False
        return self._lacks(plan.uuid, plan.updated_at, f"{now():%Y-%m-%d %H:%M}")

    def _lacks_approvals(self, uuid: str, *_: object) -> bool:
        try:
            plan = self._assembly.store.load_plan(uuid)
        except (DamagedRecord, PlanNotFound):
            return False
        return bool(approving.missing(self._assembly, plan))

    def _kept(self, uuid: str) -> _Kept:
        with self._lock:
            kept = self._plans.pop(uuid, None) or _Kept()
            self._plans[uuid] = kept
            if len(self._plans) > MOST_PLANS:
                self._plans.pop(next(iter(self._plans)))
            return kept

    def _made(self, uuid: str, kept: _Kept, number: int) -> Rendering:
        began, assembly, last = time.monotonic(), self._assembly, kept.rendering
        before = last.report if last else None
        made = content.stored(assembly, uuid, now=now(), before=before)
        parts = page.parts(made)
        hashes = {name: hashlib.sha256(html.encode()).digest() for name, html in parts.items()}
        hashes.pop("actions")
        if last is not None and kept.versions.get(last.version) == hashes:
            version = last.version
        else:
            version = f"{self._prefix}-{next(self._numbers)}"
            # Replaced, not changed: readers look into it without the lock.
            latest = list(kept.versions.items())[1 - MOST_VERSIONS :]
            kept.versions = {**dict(latest), version: hashes}
        kept.rendering = Rendering(version, number, made, parts)
        ended = time.monotonic()
        kept.again_at = ended + max(LEAST_S, TIMES * (ended - began))
        quiet_s = QUIET_S if made.plan.state in _RUNNING else SURE_S
        kept.quiet_until = max(kept.again_at, ended + quiet_s)
        return kept.rendering
