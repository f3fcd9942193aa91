# SPDX-License-Identifier: Apache-2.0
"""The pages of plans that run: each is made once for all who look, and only changes are sent."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from itertools import count
from typing import NamedTuple
from uuid import uuid4

from applier.api.v2.feed import EventFeed
from applier.assembly import Assembly, now
from applier.report import content, page
from applier.report.values import ReportContent
from planner.states import PlanState

#: How many plans are kept, and of each the versions whose readers get only what has changed.
MOST_PLANS, MOST_VERSIONS = 16, 8
#: A page of a plan that runs is not made again for so many seconds, nor for so many times as long
#: as making it took.
LEAST_S, TIMES = 0.5, 2.0
_RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)


class Rendering(NamedTuple):
    """The parts of a page by id, and the number of the newest event that was there before."""

    version: str
    number: int
    report: ReportContent
    parts: Mapping[str, str]


class _Kept:
    """What is kept of a plan."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rendering: Rendering | None = None
        self.runs = False
        self.again_at = 0.0
        #: Hashes of the parts by version, the latest last.
        self.versions: dict[str, Mapping[str, bytes]] = {}


class LivePages:
    """Makes the pages of plans, and remembers what their readers have."""

    def __init__(self, assembly: Assembly, feed: EventFeed) -> None:
        self._assembly, self._feed = assembly, feed
        self._plans: dict[str, _Kept] = {}
        self._lock = threading.Lock()
        # Versions of another process must not be taken for ours.
        self._prefix, self._numbers = uuid4().hex[:12], count(1)

    def now(self, uuid: str) -> Rendering:
        """Return the page of a plan as it is, or was a moment ago; raises PlanNotFound."""
        kept = self._kept(uuid)
        with kept.lock:
            number, last = self._feed.newest(), kept.rendering
            if last is not None and last.number == number and not kept.runs:
                return last
            if last is not None and time.monotonic() < kept.again_at:
                return last
            return self._made(uuid, kept, number)

    def changed(self, rendering: Rendering, version: str) -> dict[str, str]:
        """Return the parts that differ from those of a version; all, if it is forgotten.

        The part around the rows is never sent: its rows are parts of their own.
        """
        versions = self._kept(rendering.report.uuid).versions
        before, after = versions.get(version, {}), versions.get(rendering.version, {})
        return {
            name: html
            for name, html in rendering.parts.items()
            if name != "actions" and (name not in before or before[name] != after.get(name))
        }

    def _kept(self, uuid: str) -> _Kept:
        with self._lock:
            kept = self._plans.pop(uuid, None) or _Kept()
            self._plans[uuid] = kept
            if len(self._plans) > MOST_PLANS:
                self._plans.pop(next(iter(self._plans)))
            return kept

    def _made(self, uuid: str, kept: _Kept, number: int) -> Rendering:
        began, assembly, last = time.monotonic(), self._assembly, kept.rendering
        plan = assembly.store.load_plan(uuid)
        made = content.report(
            assembly,
            plan,
            assembly.max_workers,
            now=now(),
            is_stored=True,
            before=last.report if last else None,
        )
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
        kept.rendering, kept.runs = Rendering(version, number, made, parts), plan.state in _RUNNING
        ended = time.monotonic()
        kept.again_at = ended + max(LEAST_S, TIMES * (ended - began))
        return kept.rendering
