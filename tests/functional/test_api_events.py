# SPDX-License-Identifier: Apache-2.0
"""``/v2/events``: pages, long-polling, streams, and that no reader misses anything."""

from __future__ import annotations

import http.client
import json
import signal
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema
import pytest
from api_client import DOCUMENT, JSON, api_process, client_of, configured, stored
from command_line import PATIENCE_S, wait_until

from applier.notifications.schema import SCHEMA


def kinds(events: list[Any]) -> list[tuple[str, str]]:
    """Return the type of each event, and the state or the verb that it tells."""
    return [(e["type"], e["data"].get("state") or e["data"]["verb"]) for e in events]


def test_events_are_recorded_from_the_first_request_on(api):
    stored(api)
    first = api.simulate_get("/v2/events").json
    assert first == {"events": [], "last": 0, "newest": 0}
    plan = stored(api)
    found = api.simulate_get("/v2/events", params={"after": 0, "wait_s": 0}).json
    assert kinds(found["events"]) == [("plan.history", "create"), ("plan.state", "RECOMMENDED")]
    assert {e["plan"] for e in found["events"]} == {plan}
    assert (found["last"], found["newest"]) == (2, 2)
    for event in found["events"]:
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
        numbers += [e["number"] for e in page["events"]]
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
    [readers] = api.simulate_get("/v2/subscriptions").json["subscriptions"]
    assert (readers["name"], readers["waiting"], readers["held_back"]) == ("readers", 0, {})
    assert api.simulate_get("/v2/dead-events").json == {"events": []}
    remove = {"path": "/v2/subscriptions/remove", "headers": JSON}
    refused = api.simulate_post(**remove, body=json.dumps({"name": "readers"}))
    assert refused.status_code == 403  # without authentication, nobody is an admin
    actionplan.good("event", "subscription", "remove", "readers")
    assert api.simulate_get("/v2/subscriptions").json == {"subscriptions": []}
    [entry] = api.simulate_get("/v2/history").json["history"][-1:]
    assert (entry["verb"], entry["why"]) == ("event subscription remove", "readers")


@contextmanager
def stream(url: str, after: int, **headers: str) -> Iterator[http.client.HTTPResponse]:
    """Open a stream of events."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE_S)
    try:
        accept = {"Accept": "text/event-stream", **headers}
        connection.request("GET", f"/v2/events?after={after}", headers=accept)
        yield connection.getresponse()
    finally:
        connection.close()


def sent(answer: http.client.HTTPResponse, state: str) -> list[dict[str, Any]]:
    """Read events from a stream, until the plan is in a state."""
    found: list[dict[str, Any]] = []
    while ("plan.state", state) not in kinds(found):
        line = answer.readline()
        assert line, "the stream has ended"
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
    return found


@pytest.mark.long
def test_a_request_waits_for_the_next_event(actionplan):
    with api_process(configured(actionplan, port=0)) as api:
        assert api("/v2/events").json["newest"] == 0
        with ThreadPoolExecutor(3) as threads:
            waiting = [threads.submit(api, "/v2/events?after=0&wait_s=60") for _ in range(3)]
            api("/v2/plans", json.dumps(DOCUMENT).encode())
            answers = [w.result(PATIENCE_S).json for w in waiting]
        assert all(kinds(a["events"])[0] == ("plan.history", "create") for a in answers)
        # Nothing more happens: the answer is empty, and tells after which number to go on.
        assert api("/v2/events?after=2&wait_s=1").json == {"events": [], "last": 2, "newest": 2}


@pytest.mark.long
def test_a_stream_goes_on_after_a_break_without_a_gap(actionplan):
    with api_process(configured(actionplan, port=0)) as api:
        api("/v2/events")
        with stream(api.url, 0) as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            api("/v2/plans", json.dumps(DOCUMENT).encode())
            first = sent(answer, "RECOMMENDED")
        plan = first[0]["plan"]
        actionplan.good("apply", plan, "--yes")
        with stream(api.url, 0, **{"Last-Event-ID": "2"}) as answer:
            rest = sent(answer, "SUCCEEDED")
        numbers = [e["number"] for e in first + rest]
        assert numbers == list(range(1, len(numbers) + 1))
        assert [k for k in kinds(rest) if k == ("action.state", "SUCCEEDED")] == [
            ("action.state", "SUCCEEDED"),
            ("action.state", "SUCCEEDED"),
        ]


def has_arrived(connection: http.client.HTTPConnection) -> bool:
    """Return whether the server has read all that was sent to it, as the kernel says."""
    sides = connection.sock.getsockname(), connection.sock.getpeername()
    here, there = (f"0100007F:{port:04X}" for _, port in sides)
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    # The two ends, what is sent but not received and received but not read, and the inode, which
    # is 0 until the connection is accepted.
    known = {
        (w[1], w[2]): w[4] == "00000000:00000000" and w[9] != "0" for w in map(str.split, lines)
    }
    return known.get((here, there), False) and known.get((there, here), False)


@pytest.mark.long
def test_the_server_ends_while_requests_wait(actionplan):
    with api_process(configured(actionplan, port=0)) as api:
        api("/v2/events")
        waiting = http.client.HTTPConnection(urlsplit(api.url).netloc, timeout=PATIENCE_S)
        with closing(waiting), stream(api.url, 0) as answer:
            assert answer.readline()
            waiting.request("GET", "/v2/events?after=0&wait_s=60")
            # One that has not arrived is refused.
            wait_until(lambda: has_arrived(waiting))
            api.process.send_signal(signal.SIGTERM)
            # Sooner than the answer for which the request waits.
            assert api.process.wait(50) == 0
            assert answer.read() is not None
            assert json.loads(waiting.getresponse().read())["events"] == []
