# SPDX-License-Identifier: Apache-2.0
"""``/v2/events`` of a process: long-polling, streams, and that no reader misses anything."""

from __future__ import annotations

import http.client
import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from api_client import DOCUMENT, api_process, configured, kinds
from command_line import PATIENCE_S, wait_until


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
        assert all(kinds(a["items"])[0] == ("plan.history", "create") for a in answers)
        # Nothing more happens: the answer is empty, and tells after which number to go on.
        assert api("/v2/events?after=2&wait_s=1").json == {"items": [], "last": 2, "newest": 2}


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
            assert json.loads(waiting.getresponse().read())["items"] == []
