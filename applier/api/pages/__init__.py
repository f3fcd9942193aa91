# SPDX-License-Identifier: Apache-2.0
"""HTML pages: the list of plans, and a page for each plan that updates itself while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from applier.api.pages.live import LivePages
from applier.api.pages.resources import PlanList, PlanPage, PlanParts, StaticFile
from applier.api.parts import Parts
from applier.api.v2.feed import EventFeed

_FILES = {
    "report.css": "text/css; charset=utf-8",
    "report.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def routes(parts: Parts) -> Mapping[str, Any]:
    """Return the resource of each path."""
    assembly = parts.assembly
    feed = EventFeed(lambda: assembly.store, assembly.conf.events.keep_s)
    live = LivePages(assembly, feed)
    return {
        "/plans": PlanList(parts, feed),
        "/plans/{plan}": PlanPage(parts, live),
        "/plans/{plan}/parts": PlanParts(parts, live),
        **{f"/page/{name}": StaticFile(name, kind) for name, kind in _FILES.items()},
    }
