# SPDX-License-Identifier: Apache-2.0
"""Every receiver keeps the contract: with real files, a real HTTP server, a real RabbitMQ."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import pytest
from scratch_broker import Broker, scratch_broker

from applier import configuration
from applier.delivery import messaging
from applier.delivery.receivers import Away, EventFile, Receiver
from applier.delivery.webhook import Webhook

PLAN = "6a1f31f0-8b7e-4a53-9d3c-2a8a3f1b9d10"
HOSTILE = "".join(map(chr, range(0xA1))) + "\u2028\u202e\ufeff\U0001f4a9\ud800 \udfff'\"\\{}%s"


class Place(Protocol):
    """Where a receiver delivers to."""

    receiver: Receiver

    def arrived(self) -> list[dict[str, Any]]:
        """Return the events that have arrived since the last call."""

    def go_away(self) -> None: ...

    def come_back(self) -> None: ...


class File:
    def __init__(self, folder: Path) -> None:
        self._folder, self._read = folder / "events", 0
        self._folder.mkdir()
        self.receiver = EventFile(str(self._folder / "events.jsonl"), "h")

    def arrived(self) -> list[dict[str, Any]]:
        lines = (self._folder / "events.jsonl").read_text("ascii").splitlines()[self._read :]
        self._read += len(lines)
        return [json.loads(line) for line in lines]

    def go_away(self) -> None:
        self._folder.rename(f"{self._folder}.away")

    def come_back(self) -> None:
        Path(f"{self._folder}.away").rename(self._folder)


class Hook:
    def __init__(self) -> None:
        arrived = self._arrived = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                arrived.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            allow_reuse_port = True

        self._make_server = partial(Server, RequestHandlerClass=Handler)
        # Bound and not listening: nobody else gets the port while the server is away.
        self._held = socket.socket()
        self._held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._held.bind(("127.0.0.1", 0))
        self._port = self._held.getsockname()[1]
        self.come_back()
        self.url = f"http://127.0.0.1:{self._port}/"
        self.receiver = Webhook("ops", self.url)

    def arrived(self) -> list[dict[str, Any]]:
        found = [body["data"] for body in self._arrived]
        self._arrived.clear()
        return found

    def go_away(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def come_back(self) -> None:
        self._server = self._make_server(("127.0.0.1", self._port))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self.go_away()
        self._held.close()


class Bus:
    def __init__(self, broker: Broker, file: Path) -> None:
        self.broker = broker
        file.write_text(broker.options)
        self.receiver = messaging.Notifications(configuration.load([str(file)]), host="h")

    def arrived(self) -> list[dict[str, Any]]:
        return [m["payload"]["watcher_object.data"]["event"] for m in self.broker.messages()]

    def go_away(self) -> None:
        self.broker.proxy.go_away()

    def come_back(self) -> None:
        self.broker.proxy.come_back()


@contextmanager
def hook() -> Iterator[Hook]:
    place = Hook()
    try:
        yield place
    finally:
        place.close()


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with scratch_broker() as broker:
        yield Bus(broker, tmp_path / "watcher.conf")


@pytest.fixture(params=["file", "webhook", pytest.param("bus", marks=pytest.mark.server)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "file":
        yield File(tmp_path)
    elif request.param == "webhook":
        with hook() as found:
            yield found
    else:
        yield request.getfixturevalue("bus")


def event(number: int, message: str | None = None, state: str = "ONGOING") -> dict[str, Any]:
    at = "2026-01-02T03:04:05.678901+00:00"
    head = {"version": "1.0", "type": "plan.state", "number": number, "at": at, "plan": PLAN}
    return {**head, "data": {"state": state, "message": message}}


def deliver(place: Place, *events: dict[str, Any]) -> None:
    with place.receiver.opened() as to:
        for each in events:
            to(each)


def test_events_arrive_whole_and_in_order(place: Place) -> None:
    events = [event(number) for number in range(1, 51)]
    deliver(place, *events)
    assert place.arrived() == events
    deliver(place, event(51), event(52))
    assert place.arrived() == [event(51), event(52)]


def test_an_event_that_is_delivered_twice_arrives_twice_and_is_recognised(place: Place) -> None:
    deliver(place, event(7), event(7))
    deliver(place, event(7))
    assert [found["number"] for found in place.arrived()] == [7, 7, 7]


@pytest.mark.parametrize(
    "text", [HOSTILE, "x" * 65536, HOSTILE * 350], ids=["short", "64 KiB", "long"]
)
def test_hostile_text_arrives_whole(place: Place, text: str) -> None:
    deliver(place, event(1, text), event(2))
    assert place.arrived() == [event(1, text), event(2)]


def test_what_is_away_says_so_and_gets_what_follows_when_it_is_back(place: Place) -> None:
    deliver(place, event(1))
    place.go_away()
    for _ in range(2):
        with pytest.raises(Away) as raised:
            deliver(place, event(2))
        assert str(raised.value)
    place.come_back()
    deliver(place, event(2), event(3))
    assert [found["number"] for found in place.arrived()] == [1, 2, 3]


@pytest.mark.server
def test_a_broker_that_goes_away_between_two_events_is_away(bus: Bus) -> None:
    with bus.receiver.opened() as to:
        to(event(1))
        bus.go_away()
        with pytest.raises(Away):
            to(event(2))
    bus.come_back()
    deliver(bus, event(2))
    assert [found["number"] for found in bus.arrived()] == [1, 2]


@pytest.mark.server
@pytest.mark.parametrize("sent", [0, 1])
def test_a_broker_that_hangs_is_away_until_it_answers(
    bus: Bus, monkeypatch: pytest.MonkeyPatch, sent: int
) -> None:
    with bus.receiver.opened() as to:
        for number in range(sent):
            to(event(number))
        monkeypatch.setattr(messaging, "ANSWER_S", 0.3)
        bus.broker.proxy.hang()
        with pytest.raises(Away, match=r"within 0\.3 s"):
            to(event(7))
    with pytest.raises(Away, match="has not answered yet"):
        deliver(bus, event(7))
    bus.come_back()
    (thread,) = (t for t in threading.enumerate() if t.name == "sending")
    thread.join()
    monkeypatch.undo()
    deliver(bus, event(7), event(8))
    # What hung may have arrived late, before what was delivered again.
    arrived = [found["number"] for found in bus.arrived()]
    assert list(dict.fromkeys(arrived)) == [*range(sent), 7, 8]


@pytest.mark.server
def test_a_notification_is_as_watchers_and_a_second_one_has_the_same_message_id(bus: Bus) -> None:
    deliver(bus, event(1, "no", "FAILED"), event(1, "no", "FAILED"))
    first, second = bus.broker.messages("error")
    assert first["message_id"] == second["message_id"]
    assert first["publisher_id"] == "infra-optim:h"
    assert (first["event_type"], first["priority"]) == ("action_plan.execution.error", "ERROR")
    assert first["timestamp"] == "2026-01-02 03:04:05.678901"
    assert first["payload"]["watcher_object.name"] == "ActionPlanActionPayload"
    assert bus.broker.messages("info") == []
