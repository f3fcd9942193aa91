# SPDX-License-Identifier: Apache-2.0
"""HTTP check: asked of a real server on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from applier.actions.http_check import HttpCheck
from applier.errors import ActionFailed
from planner.plan.states import Outcome


class Answers(BaseHTTPRequestHandler):
    """Answers with the status that the path names; ``/slow`` answers nothing until it may."""

    may_answer = threading.Event()

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.may_answer.wait(30)
            return
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/200")
        else:
            self.send_response(int(self.path[1:]))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    """Yield the address of a server that answers."""
    Answers.may_answer.clear()
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    Answers.may_answer.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_right_answer_changes_nothing(url, context, printed, stop):
    work = HttpCheck({"url": f"{url}/200"}, context)
    work.precheck()
    assert work.execute(stop) is Outcome.OK
    assert printed == [f"{url}/200 answered 200\n"]


def test_a_redirect_is_an_answer_and_leads_nowhere(url, context, stop):
    assert HttpCheck({"url": f"{url}/moved", "status": 302}, context).execute(stop) is Outcome.OK
    with pytest.raises(ActionFailed, match="302"):
        HttpCheck({"url": f"{url}/moved"}, context).execute(stop)


@pytest.mark.parametrize(
    ("allowed", "is_asked"),
    [
        (None, True),
        ([], False),
        (["127.0.0.0/8"], True),
        (["local*"], True),
        (["192.0.2.0/24", "*.example.org"], False),
    ],
)
def test_only_what_is_allowed_is_asked(url, context, stop, allowed, is_asked):
    """A network holds for the address of a name, wherever the name leads."""
    work = HttpCheck(
        {"url": f"{url}/200".replace("127.0.0.1", "localhost")},
        replace(context, options={"allowed": allowed}),
    )
    if is_asked:
        assert work.execute(stop) is Outcome.OK
    else:
        with pytest.raises(ActionFailed, match="allowed"):
            work.execute(stop)


@pytest.mark.parametrize("status", [503, [500, 503]])
def test_any_status_may_be_the_right_one(url, status, context, stop):
    work = HttpCheck({"url": f"{url}/503", "status": status}, context)
    assert work.execute(stop) is Outcome.OK


def test_no_answer_in_time_fails(url, context, stop):
    with pytest.raises(ActionFailed, match="/slow does not answer: timed out"):
        HttpCheck({"url": f"{url}/slow", "seconds": 0.05}, context).execute(stop)


def test_nobody_there_fails(context, stop):
    with pytest.raises(ActionFailed, match=r"does not answer: .*refused"):
        HttpCheck({"url": "http://127.0.0.1:9/"}, context).execute(stop)
