# SPDX-License-Identifier: Apache-2.0
"""``actionplan-applier`` delivers events: nothing is missing, whoever is killed or away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from command_line import wait_until
from reserved_port import ReservedPort
from scratch_database import POSTGRESQL, database_for_tests

from applier.storage import schema_version
from applier.storage.sql import SqlStore
from applier.testing.sample_plans import new_plan
from planner.states import PlanState

pytestmark = pytest.mark.long

PROGRAM = Path(sys.executable).with_name("actionplan-applier")
CONFIGURATION = """
[actionplan]
connection = {url}
simulator = {folder}/simulator.json
[watcher_applier]
workers = 3
heartbeat_interval_s = 0.2
[events]
webhooks = {webhooks}
file = {folder}/events.jsonl
"""


class Receiver:
    """A server that can be taken away and come back on its port; it notes what it accepts."""

    def __init__(self, refuses: int = 0) -> None:
        self.got: list[dict[str, Any]] = []
        self.refuses = refuses
        self._kept = ReservedPort()
        self.port = self._kept.port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Answer requests within a block."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.refuses:
                    receiver.refuses -= 1
                    self.send_error(400)
                    return
                receiver.got.append(json.loads(body)["data"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True

        with Server(("127.0.0.1", self.port), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            try:
                yield
            finally:
                server.shutdown()
                thread.join()

    def numbers(self) -> set[int]:
        return {event["number"] for event in self.got}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The record that the services share, empty."""
    with ExitStack() as scratch:
        found = f"sqlite:///{tmp_path}/record.sqlite"
        if request.param == "postgresql":
            database = contextmanager(database_for_tests)
            found = scratch.enter_context(database("ACTIONPLAN_TEST_POSTGRESQL", POSTGRESQL))
            schema_version.upgrade(found)
        yield found


class Services:
    """Services with one configuration; the group of each is killed in the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, program: Path = PROGRAM) -> subprocess.Popen[bytes]:
        with (self._folder / f"log-{len(self.started)}").open("wb") as log:
            process = subprocess.Popen(
                [program, "--config-file", self._folder / "watcher.conf"],
                stderr=log,
                start_new_session=True,
                env={"HOME": str(self._folder), "PATH": os.defpath, "PYTHONWARNINGS": "ignore"},
            )
        self.started.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a service with all of its processes, like a loss of power."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def log(self) -> str:
        return "".join(p.read_text() for p in sorted(self._folder.glob("log-*")))


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """Services to be started."""
    made = Services(tmp_path)
    yield made
    for process in made.started:
        made.kill(process)


def queued(store: SqlStore) -> str:
    """Put a plan of ten actions into the queue."""
    plan = new_plan(*"abcdefghij")
    store.save_plan(plan)
    store.move_plan(plan.uuid, PlanState.PENDING, now=plan.created_at)
    return plan.uuid


def test_nothing_is_missing_after_kills_and_outages(
    tmp_path: Path, url: str, services: Services
) -> None:
    away, refusing = Receiver(), Receiver(refuses=3)
    webhooks = f"away:{away.url},refusing:{refusing.url}"
    text = CONFIGURATION.format(url=url, folder=tmp_path, webhooks=webhooks)
    (tmp_path / "watcher.conf").write_text(text, encoding="utf-8")
    with closing(SqlStore(url)) as store, refusing.listening():
        first = services.start()
        wait_until(lambda: len(store.subscriptions()) == 3)
        with away.listening():
            plans = [queued(store) for _ in range(3)]
            wait_until(lambda: len(away.got) > 5)
        # The receiver is away; the service and all of its processes are killed meanwhile.
        plans += [queued(store) for _ in range(3)]
        wait_until(lambda: store.subscriptions() and any(s.away for s in store.subscriptions()))
        services.kill(first)
        plans += [queued(store) for _ in range(3)]
        services.start()
        services.start()
        wait_until(lambda: all(store.load_plan(p).state is PlanState.SUCCEEDED for p in plans))
        page = store.events(limit=10_000)
        expected = [event["number"] for event in page.events]
        with away.listening():
            for receiver in (away, refusing):
                wait_until(lambda: receiver.numbers() >= set(expected))  # noqa: B023
            wait_until(lambda: len(lines_of(tmp_path)) >= len(expected))
            wait_until(lambda: all(s.delivered >= page.newest for s in store.subscriptions()))
        told = services.log()
    assert (tmp_path / "events.jsonl").read_text().endswith("\n")
    assert expected == sorted(expected)
    assert len(expected) >= 9 * 23
    by_number = {event["number"]: event for event in page.events}
    for got in (away.got, refusing.got, lines_of(tmp_path)):
        assert {event["number"] for event in got} == set(expected)
        assert all(by_number[event["number"]] == event for event in got)
        require_order(got)
    assert "events wait: Connection refused" in told
    assert "an event waits: it answers 400" in told
    assert "Traceback" not in told


def lines_of(folder: Path) -> list[dict[str, Any]]:
    """Return the events in the file, without a last one of which a part is written."""
    path = folder / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def require_order(got: list[dict[str, Any]]) -> None:
    """Each event of a plan arrives for the first time after all that come before it."""
    first: dict[str, list[int]] = defaultdict(list)
    for event in got:
        if event["number"] not in first[event["plan"]]:
            first[event["plan"]].append(event["number"])
    for numbers in first.values():
        assert numbers == sorted(numbers)


def test_a_wrong_receiver_is_refused_at_the_start(tmp_path: Path, services: Services) -> None:
    for webhooks, why in (
        ("ops:ftp://example.org", "[events] webhooks: ops: accepted: http://... or https://..."),
        ("ops:http://h/\nsecret_files = other:/f", "[events] secret_files: other: no webhook"),
        ("ops:http://h/\nsecret_files = ops:/no", "[events] secret_files: ops: /no: No such file"),
    ):
        record = f"sqlite:///{tmp_path}/r"
        text = CONFIGURATION.format(url=record, folder=tmp_path, webhooks=webhooks)
        (tmp_path / "watcher.conf").write_text(text, encoding="utf-8")
        assert services.start().wait(120) == 1
        assert why in services.log()
