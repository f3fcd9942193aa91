# SPDX-License-Identifier: Apache-2.0
"""Webhooks against a real server on loopback: what arrives, how it is signed, how it fails."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from applier.delivery import webhook
from applier.delivery.receivers import Away, EventRefused
from applier.delivery.webhook import Webhook
from applier.errors import ConfigurationError

EVENT = {
    "version": "1.0",
    "type": "action.state",
    "number": 7,
    "at": "2026-01-02T03:04:05+00:00",
    "plan": "6a1f31f0-8b7e-4a53-9d3c-2a8a3f1b9d10",
    "action": "0b0b31f0-8b7e-4a53-9d3c-2a8a3f1b9d10",
    "data": {"message": "caf\u00e9"},
}


@contextmanager
def server(answer):
    """Answer POSTs on loopback as ``answer`` says; yields the address and what has arrived."""
    arrived = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            arrived.append((self.path, dict(self.headers), body))
            answer(self)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}/hook?token=hidden", arrived
        finally:
            listening.shutdown()
            thread.join()


@contextmanager
def ended_by(event):
    """Set an event at the end of a block, so that what waits for it ends."""
    try:
        yield
    finally:
        event.set()


def status(code, **headers):
    def answer(handler):
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def raw(text, then=lambda: None):
    """Return an answer of these bytes; the connection ends after ``then``."""

    def answer(handler):
        handler.close_connection = True
        handler.wfile.write(text)
        then()

    return answer


def post(receiver, *events):
    with receiver.opened() as deliver:
        for event in events:
            deliver(event)


def test_an_event_arrives_as_a_cloud_event():
    with server(status(204)) as (address, arrived):
        post(Webhook("ops", address), EVENT, {**EVENT, "number": 8})
    [(path, headers, body), second] = arrived
    assert path == "/hook?token=hidden"
    assert headers["Content-Type"] == "application/cloudevents+json"
    assert json.loads(body) == {
        "specversion": "1.0",
        "id": "7",
        "source": f"urn:uuid:{EVENT['plan']}",
        "type": "actionplan.action.state",
        "time": EVENT["at"],
        "subject": EVENT["action"],
        "datacontenttype": "application/json",
        "data": EVENT,
    }
    assert json.loads(second[2])["id"] == "8"
    assert "webhook-signature" not in headers


@pytest.mark.parametrize(
    ("secret", "key"),
    [("open sesame\n", b"open sesame"), ("whsec_AAECAwQ=", bytes(range(5)))],
)
def test_a_request_is_signed_with_the_secret(secret, key):
    with server(status(200)) as (address, arrived):
        post(Webhook("ops", address, secret, clock=lambda: 1767323045.9), EVENT)
    [(_, headers, body)] = arrived
    signed = hmac.new(key, b"7.1767323045." + body, hashlib.sha256).digest()
    assert headers["webhook-id"] == "7"
    assert headers["webhook-timestamp"] == "1767323045"
    assert headers["webhook-signature"] == "v1," + base64.b64encode(signed).decode()


def test_an_answer_that_is_no_success_refuses_the_event_or_means_away():
    refused = dict.fromkeys([301, 400, 401, 404, 410, 500], EventRefused)
    for code, error in {**refused, **dict.fromkeys([429, 502, 503, 504], Away)}.items():
        with (
            server(status(code, Location="http://127.0.0.1:1/")) as (address, _),
            pytest.raises(error, match=f"it answers {code}"),
        ):
            post(Webhook("ops", address), EVENT)


def test_a_receiver_without_a_listener_is_away():
    with socket.socket() as taken:  # bound and not listening: nothing answers here
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(Away) as raised:
            post(Webhook("ops", f"http://me:pass@127.0.0.1:{port}/hidden"), EVENT)
    assert str(raised.value) == "Connection refused"


@pytest.mark.parametrize("text", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"])
def test_a_receiver_that_is_silent_before_or_inside_of_its_answer_is_away(monkeypatch, text):
    monkeypatch.setattr(webhook, "ANSWER_S", 0.2)
    over = threading.Event()
    with server(raw(text, partial(over.wait, 120))) as (address, arrived), ended_by(over):
        with pytest.raises(Away, match=r"no answer within 0\.2 s$"):
            post(Webhook("ops", address), EVENT)
        assert len(arrived) == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "breaks off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "breaks off"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab", "breaks off"),
        (b"hello\r\n\r\n", None),
        (b"", None),
    ],
    ids=["a chunk is cut off", "no chunk", "the body is cut off", "no HTTP", "nothing"],
)
def test_a_receiver_whose_answer_breaks_off_is_away(answer, why):
    with server(raw(answer)) as (address, _), pytest.raises(Away, match=why) as raised:
        post(Webhook("ops", address), EVENT)
    assert "hidden" not in str(raised.value)


def test_a_refusal_counts_also_if_its_text_breaks_off():
    cut = raw(b"HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
    with server(cut) as (address, _), pytest.raises(EventRefused, match="it answers 400 No"):
        post(Webhook("ops", address), EVENT)


@pytest.mark.parametrize(
    "part",
    ["HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\n\r\n"],
    ids=["its head", "its body"],
)
def test_a_receiver_that_answers_byte_by_byte_is_away_until_its_answer_ends(monkeypatch, part):
    monkeypatch.setattr(webhook, "WHOLE_S", 0.3)
    over = threading.Event()

    def drip(handler):
        handler.close_connection = True
        handler.wfile.write(part.encode())
        for _ in range(1200):
            if over.wait(0.1):
                break
            handler.wfile.write(b"x")

    answers = [drip, status(204)]
    with server(lambda handler: answers.pop(0)(handler)) as (address, arrived), ended_by(over):
        receiver = Webhook("ops", address)
        with pytest.raises(Away, match=r"^no whole answer within 0\.3 s$"):
            post(receiver, EVENT)
        with pytest.raises(Away, match=r"^it has not answered yet$"):
            post(receiver, EVENT)
        over.set()
        (thread,) = (t for t in threading.enumerate() if t.name == "sending")
        thread.join(120)
        monkeypatch.undo()
        post(receiver, EVENT)
    assert len(arrived) == 2


def test_an_answer_may_be_long(monkeypatch):
    monkeypatch.setattr(webhook, "MOST_BYTES", 10)

    def much(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        handler.wfile.write(b"x" * 100_000)

    with server(much) as (address, arrived):
        post(Webhook("ops", address), EVENT, EVENT)
    assert len(arrived) == 2


@pytest.mark.parametrize("address", ["", "ops.example.org", "ftp://h/x", "http://", "http://h:x/"])
def test_an_address_that_is_none_is_refused_without_being_shown(address):
    with pytest.raises(ConfigurationError) as raised:
        Webhook("ops", address)
    assert str(raised.value) == "[events] webhooks ops: accepted: http://... or https://..."


@pytest.mark.parametrize(("secret", "why"), [(" \n", "empty"), ("whsec_!", "not base64")])
def test_a_secret_that_is_none_is_refused(secret, why):
    with pytest.raises(ConfigurationError, match=why):
        Webhook("ops", "https://h/", secret)
