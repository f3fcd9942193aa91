# SPDX-License-Identifier: Apache-2.0
"""The client of the product against the real API: what scripts and notebooks do with it."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from http.client import HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from api_client import DOCUMENT, PROGRAM, api_process, configured
from command_line import EXAMPLE
from reserved_port import ReservedPort
from urllib3.connection import HTTPConnection

from applier import client
from applier.client import ApiError, Client, Plan

FAILS = {"name": "<b>bad</b>", "actions": [{"name": "x", "action_type": "nop"}]}
NEVER = "2999-01-01T00:00:00+00:00"


def picture_of(html: str) -> str:
    """Return the SVG that the HTML of a plan shows."""
    found = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert found
    return base64.b64decode(found[1]).decode()


@pytest.mark.long
def test_a_script_makes_starts_follows_explains_and_lists(actionplan, tmp_path):
    service = PROGRAM.with_name("actionplan-applier")
    with api_process(configured(actionplan, port=0), service, "--with-api") as api:
        asked = Client(api.url)
        plan = asked.create(EXAMPLE, settings=["migrate.parallelization=3"], why="fans")
        assert plan.state == "RECOMMENDED"
        names = [action["name"] for action in plan.actions]
        assert names[0] in picture_of(plan._repr_html_())
        assert "is expected to start" in plan.why(names[-1])
        seen: list[str] = []
        plan.start().wait(lambda now: seen.append(now.state))
        assert (plan.state, seen[-1]) == ("SUCCEEDED", "SUCCEEDED")
        assert all(action["ended_at"] for action in plan.actions)
        assert "SUCCEEDED" in plan._repr_html_()
        assert plan.report(tmp_path / "report.html").read_bytes().startswith(b"<!doctype html>")
        with redirect_stdout(io.StringIO()) as printed:
            assert asked.plan("last").wait().uuid == plan.uuid
        assert printed.getvalue() == "SUCCEEDED: 11 of 11 actions have ended, 0 run\n"

        guarded = asked.create({**DOCUMENT, "guards": {"approvals": 1}})
        with pytest.raises(ApiError, match="needs 1 approval") as refused:
            guarded.start()
        assert (refused.value.status, refused.value.problem["status"]) == (409, 409)
        guarded.approve("looked at it").start(at=NEVER)
        with pytest.raises(TimeoutError, match=r"has not ended after 0\.1 s"):
            guarded.wait(timeout_s=0.1)
        assert guarded.stop("cancel", why="wrong hosts").wait().state == "CANCELLED"
        assert guarded.resume().state in ("PENDING", "ONGOING", "SUCCEEDED")
        assert guarded.wait().state == "SUCCEEDED"

        found = asked.plans(creator="anonymous", most=1)
        assert [listed["uuid"] for listed in found] == [guarded.uuid]
        assert len(asked.plans()) == 2
        assert "2 of 2" in found._repr_html_()
        with pytest.raises(ApiError, match="no plan 'a b'"):
            asked.plan("a b")
        with pytest.raises(ApiError, match="did you mean 'name'"):
            asked.plans(nam="x")


def test_a_request_whose_answer_was_lost_is_sent_again_and_done_once(actionplan, monkeypatch):
    monkeypatch.setattr(client, "PAUSE_S", 0)
    with api_process(configured(actionplan, port=0)) as api:
        sent: list[int] = []
        answered = HTTPConnection.getresponse

        def lost(connection: HTTPConnection) -> HTTPResponse:
            answer = answered(connection)
            sent.append(answer.status)
            if len(sent) < client.TRIES:
                raise ConnectionResetError("cut off")
            return answer

        monkeypatch.setattr(HTTPConnection, "getresponse", lost)
        made = Client(api.url).create(DOCUMENT)
        assert sent == [201] * client.TRIES
        assert [plan["uuid"] for plan in Client(api.url).plans()] == [made.uuid]


@pytest.fixture
def answers() -> Iterator[tuple[str, list[tuple[int, dict[str, str], Any]], list[str]]]:
    """Serve answers in their order, the last one again and again; note what was asked."""
    given: list[tuple[int, dict[str, str], Any]] = []
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, headers, value = given.pop(0) if len(given) > 1 else given[0]
            body = json.dumps(value).encode()
            self.send_response(status)
            for name, text in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", given, asked
        finally:
            server.shutdown()


PLAN = {"uuid": "u", "name": "night", "state": "ONGOING", "actions": []}


def test_a_change_that_is_being_carried_out_is_asked_for_again_if_the_server_says_so(answers):
    url, given, asked = answers
    problem = {"detail": "a request with this key is being carried out"}
    given += [(409, {"Retry-After": "0"}, problem), (200, {}, PLAN)]
    Client(url).ask("POST", "/plans/u/start", json={})
    assert asked == ["/v2/plans/u/start"] * 2
    given[:] = [(409, {}, {"detail": "it runs already"})]
    with pytest.raises(ApiError, match="runs already"):
        Client(url).ask("POST", "/plans/u/start", json={})
    assert len(asked) == 3


def test_whoever_waits_so_long_that_events_were_deleted_goes_on_with_newer_ones(answers):
    url, given, asked = answers
    gone = {"detail": "events up to number 7 were deleted"}
    none: dict[str, Any] = {"items": [], "last": 9, "newest": 9}
    given += [(200, {}, none), (200, {}, PLAN), *[(410, {}, gone), (200, {}, none)] * 2]
    given[4:4] = [(200, {}, PLAN)]
    given += [(200, {}, {**PLAN, "state": "SUCCEEDED"})]
    seen: list[str] = []
    plan = Plan(Client(url), PLAN).wait(lambda now: seen.append(now.state))
    assert (plan.state, seen) == ("SUCCEEDED", ["ONGOING", "ONGOING", "SUCCEEDED"])
    newest = [path for path in asked if "limit=1&" in path]
    assert len(newest) == 3


def test_an_api_that_is_away_or_is_none_is_a_sentence(actionplan, monkeypatch):
    monkeypatch.setattr(client, "PAUSE_S", 0)
    port = ReservedPort()
    with pytest.raises(ApiError, match=f"http://127.0.0.1:{port.port} does not answer") as away:
        Client(f"http://127.0.0.1:{port.port}/").plans()
    assert away.value.status == 0
    port.close()
    with (
        api_process(configured(actionplan, port=0)) as api,
        pytest.raises(ApiError, match="there is no such path"),
    ):
        Client(f"{api.url}/nothing").plans()


def test_texts_of_plans_are_no_markup(api):
    class Answers:
        """Answers from the application in this process."""

        def ask(self, method, path, **_sent):
            return api.simulate_request(method, f"/v2{path}")

    made = api.simulate_post("/v2/plans", json=FAILS).json
    shown = Plan(Answers(), made)._repr_html_()
    assert "&lt;b&gt;bad" in shown
    assert "<b>bad" not in shown
