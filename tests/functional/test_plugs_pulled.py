# SPDX-License-Identifier: Apache-2.0
"""The plug of each part is pulled while plans are made and run over HTTP: no event is missing.

Killed are the API, and the service that runs plans and delivers events. Cut off are the database,
the broker and the receiver of a webhook.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from api_client import PROGRAM as API
from api_client import Process
from command_line import wait_until
from reserved_port import ReservedPort
from scratch_broker import Broker, scratch_broker
from scratch_database import database_for_tests, run
from test_receivers import Hook
from worker_processes import Processes

from applier.delivery.messaging import message_of
from applier.notifications.watcher import notification
from applier.storage import schema_version
from applier.storage.sql_store import SqlStore
from planner.plan.states import PlanState

pytestmark = pytest.mark.server

#: How many plans are made while each plug is pulled.
PLANS = 3
PROGRAM = "actionplan-applier"
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
DOCUMENT = json.dumps(
    {"actions": [{"name": f"a{i}", "action_type": "nop"} for i in range(5)]}
).encode()


class Site:
    """The API and the service over one record, with a broker and a receiver of a webhook."""

    def __init__(self, folder: Path, url: str, broker: Broker) -> None:
        self.url, self.broker, self.receiver = url, broker, Hook()
        self.services = Processes(folder)
        self._kept = ReservedPort()
        port = self._kept.port
        text = CONFIGURATION.format(url=url, folder=folder, webhooks=f"w:{self.receiver.url}")
        text += f"{broker.options}[api]\nport = {port}\nrequests_per_second = 100000\n"
        (folder / "watcher.conf").write_text(text, encoding="utf-8")
        self.api, self.service = self.services.start(API), self.services.start(PROGRAM)
        self.ask = Process(self.api, f"http://127.0.0.1:{port}")

    def insist(self, path: str, body: bytes | None = None, key: str = "") -> Any:
        """Ask the API until it answers, as programs do that send their key again."""

        def answered() -> Any:
            try:
                headers = {"Content-Type": "application/json", "Idempotency-Key": key}
                answer = self.ask(path, body, headers=headers)
            except (OSError, HTTPException):
                return None
            assert answer.status < 500 or answer.status == 503, answer.body
            return answer if answer.status < 400 else None

        return wait_until(answered).json

    def kill_api(self) -> None:
        """Kill the API, and start it again."""
        self.services.kill(self.api)
        self.api = self.services.start(API)

    def kill_service(self) -> None:
        """Kill the service that runs plans and delivers events, and start it again."""
        self.services.kill(self.service)
        self.service = self.services.start(PROGRAM)

    def cut_database(self) -> None:
        """End all connections to the database."""
        others = "FROM pg_stat_activity WHERE datname = current_database()"
        text = f"SELECT pg_terminate_backend(pid) {others} AND pid <> pg_backend_pid()"
        run(self.url, text)

    def cut_broker(self) -> None:
        """End all connections to the broker, which comes back when that was noticed."""
        self.broker.proxy.go_away()
        self._wait_for_trouble(is_webhook=False)
        self.broker.proxy.come_back()

    def cut_receiver(self) -> None:
        """End the receiver of the webhook, which comes back when that was noticed."""
        self.receiver.go_away()
        self._wait_for_trouble(is_webhook=True)
        self.receiver.come_back()

    def _wait_for_trouble(self, *, is_webhook: bool) -> None:
        with closing(SqlStore(self.url)) as store:
            wait_until(
                lambda: [
                    s
                    for s in store.subscriptions()
                    if s.away and s.name.startswith("webhook") is is_webhook
                ]
            )

    def end(self) -> None:
        """End all."""
        self.services.close()
        self.receiver.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site with a database and a broker of its own."""
    with ExitStack() as scratch:
        url = scratch.enter_context(database_for_tests())
        schema_version.upgrade(url)
        made = Site(tmp_path, url, scratch.enter_context(scratch_broker()))
        scratch.callback(made.end)
        yield made


class Reader(threading.Thread):
    """Waits for events over HTTP, page after page."""

    def __init__(self, site: Site) -> None:
        super().__init__(daemon=True)
        self._site, self.got, self.last = site, list[dict[str, Any]](), 0
        self.ended = threading.Event()

    def run(self) -> None:
        """Read until the end."""
        while not self.ended.is_set():
            page = self._site.insist(f"/v2/events?after={self.last}&wait_s=1")
            self.got += page["items"]
            self.last = page["last"]


def test_no_event_is_missing(site, tmp_path):
    reader = Reader(site)
    with closing(SqlStore(site.url)) as store, ThreadPoolExecutor() as automation:
        site.insist("/v2/events?wait_s=0")
        wait_until(lambda: len(store.subscriptions()) == 4)
        reader.start()

        def run(key: str) -> str:
            uuid = site.insist("/v2/plans", DOCUMENT, key)["uuid"]
            site.insist(f"/v2/plans/{uuid}/start", b"{}", key)
            return str(uuid)

        plugs: list[Callable[[], None]] = [
            *(site.kill_api, site.kill_service, site.cut_database),
            *(site.cut_broker, site.cut_receiver),
        ]
        plans = list[str]()
        for plug in plugs:
            asked = [automation.submit(run, f"{plug.__name__} {i}") for i in range(PLANS)]
            plug()
            plans += [one.result() for one in asked]
        wait_until(lambda: all(store.load_plan(p).state is PlanState.SUCCEEDED for p in plans))
        page = store.events(limit=10_000)
        wait_until(
            lambda: all(s.delivered >= page.newest for s in store.subscriptions() if not s.until)
        )
        wait_until(lambda: reader.last >= page.newest)
        reader.ended.set()
        reader.join()
    expected = {event["number"]: event for event in page.events}
    assert len(set(plans)) == PLANS * len(plugs)
    assert {event["plan"] for event in page.events} == set(plans)
    assert reader.got == page.events
    for got in (site.receiver.arrived(), lines_of(tmp_path)):
        assert {event["number"]: event for event in got} == expected
        require_order(got)
    told = [(made, e) for e in page.events if (made := notification(e))]
    ids = {message_of(event, made, "")["message_id"] for made, event in told}
    arrived = [m for priority in ("info", "error") for m in site.broker.messages(priority)]
    assert {message["message_id"] for message in arrived} == ids
    assert (tmp_path / "events.jsonl").read_text().endswith("\n")
    assert "Traceback" not in site.services.told()


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
