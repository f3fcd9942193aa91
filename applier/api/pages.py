# SPDX-License-Identifier: Apache-2.0
"""HTML pages: the list of plans, and a page for each plan that updates itself while it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import falcon

from applier.api.authentication import AGAIN
from applier.api.endpoints import Call, Endpoint
from applier.assembly import now
from applier.report import page
from applier.report.attention import waits_for
from applier.store import PlanFilters, PlanSummary
from applier.wording import count
from planner.making import registry
from planner.plan.states import PlanState

if TYPE_CHECKING:
    from applier.storage.sql_store import SqlStore

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
    at = now()
    # Each minute, what is shown of plans that run is older.
    tag = f"{call.parts.feed.newest()}-{at:%d%H%M}"
    call.response.set_header("ETag", f'W/"{tag}"')
    if tag in (call.request.if_none_match or ()):
        call.response.status = falcon.HTTP_304
        return None
    call.response.set_headers(HEADERS)
    query = {k: v for k in _FILTERS if (v := call.request.get_param(k))}
    after = call.request.get_param("after") or None
    return call.store.of_one_moment(lambda: _listed(call, query, after, at))


def _listed(call: Call, query: Mapping[str, str], after: str | None, at: datetime) -> str:
    filters = _filters(query, call.assembly.guard.most_approvals, at)
    rows = list(islice(_rows(call, filters, after), LISTED + 1))
    caption = "older ones" if after else "the latest first"
    if "needs_you" in query:  # how many there are is known once all are listed
        caption = f"Plans that need somebody, {caption}"
    else:
        found = call.store.count_plans(most=COUNTED + 1, **filters)
        number = count(found, "plan") if found <= COUNTED else f"over {COUNTED} plans"
        caption = f"{number}, {caption}"
    last = {**query, "after": rows[LISTED - 1][0].uuid} if len(rows) > LISTED else {}
    return page.plans(
        rows[:LISTED],
        now=at,
        caption=caption,
        query=query,
        states=list(_states(call.store, query, filters)),
        planners=registry.names(registry.PLANNERS),
        ages=AGES,
        older=falcon.to_query_str(last, prefix=False),
    )


def _rows(call: Call, filters: PlanFilters, after: str | None) -> Iterator[tuple[PlanSummary, str]]:
    """Yield the plans of a list, each with what it waits for if that is a person.

    With the filter ``needs_you``, the record lists plans that may need somebody: only those that
    do are yielded.
    """
    most = LISTED + 1
    while found := call.store.list_plans(limit=most, after=after, **filters):
        for plan in found:
            wanted = waits_for(call.store, plan, call.parts.live.lacks_approvals)
            if wanted or filters.get("needs_you") is None:
                yield plan, wanted
        if len(found) < most:
            return
        after = found[-1].uuid


def _filters(query: Mapping[str, str], approvals: int, at: datetime) -> PlanFilters:
    """Return the filters of a query; raises falcon.HTTPInvalidParam.

    A site demands up to so many ``approvals``.
    """
    state, days = query.get("state"), query.get("since", "")
    if state and state not in list(PlanState):
        raise falcon.HTTPInvalidParam(f"one of {', '.join(PlanState)} is accepted", "state")
    if days and not re.fullmatch("[1-9][0-9]{0,4}", days):
        raise falcon.HTTPInvalidParam("a number of days is accepted", "since")
    return PlanFilters(
        search=query.get("search"),
        state=PlanState(state) if state else None,
        planner=query.get("planner"),
        creator=query.get("creator"),
        since=at - timedelta(days=min(int(days), 36500)) if days else None,
        needs_you=approvals if "needs_you" in query else None,
    )


class StateLink(NamedTuple):
    """A link of the list of plans to those in a state; ``word`` is the class of its badge."""

    word: str
    label: str
    query: str
    is_chosen: bool


def _states(store: SqlStore, query: Mapping[str, str], filters: PlanFilters) -> Iterator[StateLink]:
    """Yield links for all plans, for what needs somebody, and for each state that plans are in.

    They keep the other filters, by which plans are counted, too.
    """
    kept = {name: value for name, value in query.items() if name not in ("state", "needs_you")}
    others = filters.copy()
    others["needs_you"] = None

    def link(word: str, label: str, is_chosen: bool, **chosen: str) -> StateLink:
        return StateLink(word, label, falcon.to_query_str({**kept, **chosen}), is_chosen)

    yield link("", "all", kept == query)
    yield link("needs", "needs you", "needs_you" in query, needs_you="1")
    for state in PlanState:
        if state is PlanState.DELETED:
            continue
        others["state"] = state
        number = store.count_plans(most=COUNTED + 1, **others)
        if number or query.get("state") == state:
            words = f"{state} {number}" if number <= COUNTED else f"{state} over {COUNTED}"
            yield link(state, words, query.get("state") == state, state=state)


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
