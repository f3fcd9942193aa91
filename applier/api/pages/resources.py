# SPDX-License-Identifier: Apache-2.0
"""``/plans`` and ``/plans/ID``: the HTML pages, and the files that they load."""

from __future__ import annotations

from collections.abc import Mapping

import falcon

from applier.api.pages.live import LivePages
from applier.api.parts import Parts, caller_of
from applier.api.token import AGAIN
from applier.api.v2.feed import EventFeed
from applier.report import page
from applier.report.plan_list import listed

#: Browsers let a page load and request only URLs of this server, and show it in no frame.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: How many plans are listed.
LISTED = 100
#: The rules that decide which buttons a page has.
_STEERING = ("plan:run", "plan:approve", "action:steer")


class PlanList:
    """The list of plans."""

    RULES: Mapping[str, str] = {"GET": "plan:read"}

    def __init__(self, parts: Parts, feed: EventFeed) -> None:
        self._parts, self._feed = parts, feed

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Show the latest plans; 304 if nothing has happened since the ETag was given."""
        number = str(self._feed.newest())
        response.set_header("ETag", f'"{number}"')
        if number in (request.if_none_match or ()):
            response.status = falcon.HTTP_304
            return
        found = self._parts.assembly.store.list_plans(limit=LISTED)
        _answer(response, page.plans([listed(plan) for plan in found]))


class PlanPage:
    """The page of a plan."""

    RULES: Mapping[str, str] = {"GET": "plan:read"}

    def __init__(self, parts: Parts, live: LivePages) -> None:
        self._parts, self._live = parts, live

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Show a plan; redirect to the URL with its uuid if the request names it otherwise."""
        uuid = self._parts.assembly.store.find_plan(plan)
        if uuid != plan:
            raise falcon.HTTPSeeOther(f"/plans/{uuid}{query_again(request)}")
        made = self._live.now(uuid)
        caller, policy = caller_of(request), self._parts.policy
        may = " ".join(rule for rule in _STEERING if policy.allows(caller, rule))
        shown = page.live(made.report, made.parts, version=made.version, may=may)
        _answer(response, shown)


class PlanParts:
    """The parts of the page of a plan that have changed."""

    RULES: Mapping[str, str] = {"GET": "plan:read"}

    def __init__(self, parts: Parts, live: LivePages) -> None:
        self._parts, self._live = parts, live

    def on_get(self, request: falcon.Request, response: falcon.Response, plan: str) -> None:
        """Answer with the parts that differ from the ``version`` in the query, else with all."""
        made = self._live.now(self._parts.assembly.store.find_plan(plan))
        response.media = {
            "version": made.version,
            "title": page.title(made.report),
            "parts": self._live.changed(made, request.get_param("version") or ""),
        }


class StaticFile:
    """A file that all pages refer to; it has no secrets, so it is open to everybody."""

    PUBLIC = True
    RULES: Mapping[str, str] = {}

    def __init__(self, name: str, kind: str) -> None:
        self._name, self._kind = name, kind

    def on_get(self, _request: falcon.Request, response: falcon.Response) -> None:
        """Answer with the file."""
        response.content_type = self._kind
        response.set_header("Cross-Origin-Resource-Policy", "same-origin")
        response.text = page.static(self._name)


def query_again(request: falcon.Request) -> str:
    """Return ``?token=TOKEN`` for a redirect if the request had the right token, else nothing."""
    return str(request.env.get(AGAIN, ""))


def _answer(response: falcon.Response, text: str) -> None:
    response.content_type = "text/html; charset=utf-8"
    for name, value in HEADERS.items():
        response.set_header(name, value)
    response.text = text
