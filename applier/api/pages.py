# SPDX-License-Identifier: Apache-2.0
"""HTML pages: the list of plans, and a page for each plan that updates itself while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import falcon

from applier.api.authentication import AGAIN
from applier.api.endpoints import Call, Endpoint
from applier.assembly import now
from applier.report import page
from applier.report.values import StateLink
from applier.report.work import listed
from applier.store import PlanFilters, PlanSummary
from applier.wording import count
from planner.making import registry
from planner.plan.states import PlanState

if TYPE_CHECKING:
    from applier.storage.sql import SqlStore

#: Browsers let a page load and request only URLs of this server, and show it in no frame.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
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
#: How many plans are on a page of the list, and of how many in a state it says the number.
LISTED, COUNTED = 50, 999
#: The choices of the list for how long ago a plan was made.
AGES = (("1", "in a day"), ("7", "in a week"), ("30", "in a month"))
#: The parameters of the list, besides the page ``after`` a plan.
_FILTERS = ("search", "state", "planner", "creator", "since", "needs_you")
#: The rules that decide which buttons a page has.
_STEERING = ("plan:run", "plan:approve", "action:steer")


@Endpoint("GET /plans", "plan:read", media=falcon.MEDIA_HTML)
def plan_list(call: Call) -> str | None:
    """Show the latest plans; 304 if nothing has happened since the ETag was given.

    The query filters them as that of ``/v2/plans``; ``since`` is in days.
    """
    number = str(call.parts.feed.newest())
    call.response.set_header("ETag", f'"{number}"')
    if number in (call.request.if_none_match or ()):
        call.response.status = falcon.HTTP_304
        return None
    call.response.set_headers(HEADERS)
    query = {k: v for k in _FILTERS if (v := call.request.get_param(k))}
    after = call.request.get_param("after") or None
    return call.store.of_one_moment(lambda: _listed(call, query, after))


def _listed(call: Call, query: Mapping[str, str], after: str | None) -> str:
    store, filters, at = call.store, _filters(call, query), now()
    found = store.list_plans(limit=LISTED + 1, after=after, **filters)
    shown, more = found[:LISTED], len(found) > LISTED
    guard = call.assembly.guard

    def waits(plan: PlanSummary) -> bool:
        needed = max(plan.approvals, guard.site.approvals)
        if plan.state is not PlanState.RECOMMENDED or not needed:
            return False
        return len({one.who for one in store.approvals(plan.uuid).approvals}) < needed

    number = count(store.count_plans(most=COUNTED + 1, **filters), "plan")
    return page.plans(
        [listed(plan, at, needs_approval=waits(plan)) for plan in shown],
        caption=f"{number}, the latest first" if not after else f"{number}, older ones",
        query=query,
        states=list(_states(store, query)),
        planners=registry.names(registry.PLANNERS),
        ages=AGES,
        older=falcon.to_query_str({**query, "after": shown[-1].uuid}, prefix=False) if more else "",
    )


def _filters(call: Call, query: Mapping[str, str]) -> PlanFilters:
    """Return the filters of a query; raises falcon.HTTPInvalidParam."""
    state, days = query.get("state"), call.request.get_param_as_int("since", min_value=1)
    if state and state not in list(PlanState):
        raise falcon.HTTPInvalidParam(f"one of {', '.join(PlanState)} is accepted", "state")
    return PlanFilters(
        search=query.get("search"),
        state=PlanState(state) if state else None,
        planner=query.get("planner"),
        creator=query.get("creator"),
        since=now() - timedelta(days=min(days, 36500)) if days else None,
        needs_you=True if query.get("needs_you") else None,
    )


def _states(store: SqlStore, query: Mapping[str, str]) -> Iterator[StateLink]:
    """Yield a link for what needs somebody, and one for each state that plans are in."""
    yield StateLink("needs", "needs you", "needs_you=1", "needs_you" in query)
    for state in PlanState:
        number = store.count_plans(most=COUNTED + 1, state=state)
        if number and state is not PlanState.DELETED:
            words = f"{state} {number}" if number <= COUNTED else f"{state} over {COUNTED}"
            yield StateLink(state, words, f"state={state}", query.get("state") == state)


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
