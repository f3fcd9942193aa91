# SPDX-License-Identifier: Apache-2.0
"""``/v2/events``: pages, gaps, and who reads."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import jsonschema
from api_client import JSON, client_of, configured, kinds, stored

from applier.notifications.schema import SCHEMA


def test_events_are_recorded_from_the_first_request_on(api):
    stored(api)
    first = api.simulate_get("/v2/events").json
    assert first == {"items": [], "last": 0, "newest": 0}
    plan = stored(api)
    found = api.simulate_get("/v2/events", params={"after": 0, "wait_s": 0}).json
    assert kinds(found["items"]) == [("plan.history", "create"), ("plan.state", "RECOMMENDED")]
    assert {e["plan"] for e in found["items"]} == {plan}
    assert (found["last"], found["newest"]) == (2, 2)
    for event in found["items"]:
        jsonschema.validate(event, SCHEMA)
    assert api.simulate_get("/v2/schemas/event").json == SCHEMA


def test_pages_follow_each_other_and_a_gap_is_told(actionplan):
    api = client_of(configured(actionplan))
    api.simulate_get("/v2/events")
    for _ in range(3):
        stored(api)
    numbers: list[int] = []
    after = 0
    while after < 6:
        page = api.simulate_get("/v2/events", params={"after": after, "limit": 4}).json
        numbers += [e["number"] for e in page["items"]]
        after = page["last"]
    assert numbers == [1, 2, 3, 4, 5, 6]
    for query in ("after=-1", "after=x", "wait_s=61", "limit=0", "since=1"):
        answer = api.simulate_get("/v2/events", query_string=query)
        assert (answer.status_code, query.partition("=")[0] in answer.text) == (400, True)
    ahead = api.simulate_get("/v2/events", params={"after": 7})
    assert (ahead.status_code, ahead.json["title"]) == (409, "No such event")
    with closing(sqlite3.connect(actionplan.record)) as record, record:
        record.execute("UPDATE actionplan_subscription SET until = '2000-01-01 00:00:00.000000'")
    again = client_of(actionplan)
    gone = again.simulate_get("/v2/events", params={"after": 1})
    assert (gone.status_code, gone.json["title"]) == (410, "Events were deleted")
    assert "number 6 were deleted" in gone.json["detail"]
    assert again.simulate_get("/v2/events", params={"after": 6, "wait_s": 0}).status_code == 200


def test_subscriptions_are_listed_and_removed(actionplan):
    api = client_of(configured(actionplan))
    api.simulate_get("/v2/events")
    stored(api)
    [readers] = api.simulate_get("/v2/subscriptions").json["items"]
    assert (readers["name"], readers["waiting"], readers["held_back"]) == ("readers", 0, {})
    assert api.simulate_get("/v2/dead-events").json == {"items": []}
    remove = {"path": "/v2/subscriptions/remove", "headers": JSON}
    refused = api.simulate_post(**remove, body=json.dumps({"name": "readers"}))
    assert refused.status_code == 403  # without authentication, nobody is an admin
    actionplan.good("event", "subscription", "remove", "readers")
    assert api.simulate_get("/v2/subscriptions").json == {"items": []}
    [entry] = api.simulate_get("/v2/history").json["items"][-1:]
    assert (entry["verb"], entry["why"]) == ("event subscription remove", "readers")
