# SPDX-License-Identifier: Apache-2.0
"""HTML pages: the list of plans, and a page for each plan that updates itself while it runs."""

from __future__ import annotations

from typing import Any

import falcon

from applier.api.authentication import AGAIN
from applier.api.endpoints import Call, Endpoint
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
_FILES = (
    ("report.css", "text/css; charset=utf-8"),
    ("report.js", "text/javascript; charset=utf-8"),
    ("live.js", "text/javascript; charset=utf-8"),
    ("icon.svg", "image/svg+xml"),
)
#: How many plans are listed.
LISTED = 100
#: The rules that decide which buttons a page has.
_STEERING = ("plan:run", "plan:approve", "action:steer")


@Endpoint("GET /plans", "plan:read", media=falcon.MEDIA_HTML)
def plan_list(call: Call) -> str | None:
    """Show the latest plans; 304 if nothing has happened since the ETag was given."""
    number = str(call.parts.feed.newest())
    call.response.set_header("ETag", f'"{number}"')
    if number in (call.request.if_none_match or ()):
        call.response.status = falcon.HTTP_304
        return None
    call.response.set_headers(HEADERS)
    return page.plans([listed(plan) for plan in call.store.list_plans(limit=LISTED)])


@Endpoint("GET /plans/{plan}", "plan:read", media=falcon.MEDIA_HTML)
def plan_page(call: Call) -> str:
    """Show a plan; redirect to the URL with its uuid if the request names it otherwise."""
    uuid = call.store.find_plan(call.names["plan"])
    if uuid != call.names["plan"]:
        # With the right token, the address has it again.
        raise falcon.HTTPSeeOther(f"/plans/{uuid}{call.request.env.get(AGAIN, '')}")
    made, policy = call.parts.live.now(uuid), call.parts.policy
    may = " ".join(rule for rule in _STEERING if policy.allows(call.caller, rule))
    call.response.set_headers(HEADERS)
    return page.live(made.report, made.parts, version=made.version, may=may)


@Endpoint("GET /plans/{plan}/parts", "plan:read")
def plan_parts(call: Call) -> dict[str, Any]:
    """Answer with the parts that differ from the ``version`` in the query, else with all."""
    live = call.parts.live
    made = live.now(call.store.find_plan(call.names["plan"]))
    changed = live.changed(made, call.request.get_param("version") or "")
    return {"version": made.version, "title": page.title(made.report), "parts": changed}


def _file(name: str, media: str) -> Endpoint:
    """Return the endpoint of a file that all pages refer to; it has no secrets, and is public."""

    @Endpoint(f"GET /page/{name}", None, media=media)
    def content(call: Call) -> str:
        call.response.set_header("Cross-Origin-Resource-Policy", "same-origin")
        return page.static(name)

    return content


ENDPOINTS = (plan_list, plan_page, plan_parts, *(_file(name, media) for name, media in _FILES))
