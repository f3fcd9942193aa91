# SPDX-License-Identifier: Apache-2.0
"""What monitoring asks of the API and of the service; traces, as a collector gets them."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests
from api_client import closed_client, configured
from command_line import PATIENCE_S, CommandLine, wait_until
from falcon.testing import TestClient
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client.parser import text_string_to_metric_families
from reserved_port import ReservedPort
from scratch_database import connected, empty_record_on
from worker_processes import PROGRAMS

from applier.storage.sql_store import SqlStore

PLAN = {"name": "night", "actions": [{"action_type": "nop"}, {"action_type": "nop"}]}


def values(text: str) -> dict[tuple[str, ...], float]:
    """Return the values of metrics, by name and values of labels."""
    families = text_string_to_metric_families(text)
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def stored(actionplan: CommandLine) -> None:
    """Store a plan of two actions."""
    document = actionplan.folder / "night.json"
    document.write_text(json.dumps(PLAN))
    actionplan.good("create", str(document))


def test_requests_are_counted_by_route_and_status(api):
    for path in ("/v2/plans", "/v2/plans?limit=x", "/v2/plans/nope", "/v2/plans/nope2", "/a", "/b"):
        api.simulate_get(path)
    api.simulate_put("/v2/plans")
    found = values(api.simulate_get("/metrics").text)
    counts = {key[1:]: n for key, n in found.items() if key[0] == "actionplan_http_requests_total"}
    assert counts == {
        ("GET", "/v2/plans", "200"): 1,
        ("GET", "/v2/plans", "400"): 1,
        ("GET", "/v2/plans/{plan}", "404"): 2,
        ("GET", "other", "404"): 2,
        ("PUT", "/v2/plans", "405"): 1,
    }
    assert found["actionplan_http_request_duration_seconds_count", "GET", "/v2/plans"] == 2
    assert [n for key, n in found.items() if key[0] == "actionplan_build_info"] == [1]
    assert found["process_resident_memory_bytes",] > 0


def test_metrics_count_plans_and_actions_of_the_record(api, actionplan):
    stored(actionplan)
    actionplan.good("start", "last")
    answer = api.simulate_get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found = values(answer.text)
    assert found["actionplan_record_up",] == 1
    assert found["actionplan_plans", "PENDING"] == 1
    assert found["actionplan_plans", "FAILED"] == 0
    assert found["actionplan_actions", "nop", "PENDING"] == 2
    assert found["actionplan_oldest_pending_plan_age_seconds",] > 0
    assert values(api.simulate_get("/metrics").text)["actionplan_plans", "PENDING"] == 1


def test_health_needs_no_record_and_no_password(actionplan):
    users = actionplan.folder / "htpasswd"
    users.write_text("")
    configured(actionplan, auth_strategy="http_basic", http_basic_auth_user_file=users)
    with closed_client(actionplan) as api:
        assert api.simulate_get("/healthz").json == {"status": "ok"}
        assert not actionplan.record.exists()
        SqlStore(f"sqlite:///{actionplan.record}").close()
        assert wait_until(lambda: api.simulate_get("/readyz").status_code == 200)
        assert api.simulate_get("/metrics").status_code == 401


def test_a_dead_record_is_told(api, actionplan):
    actionplan.record.write_text("no database at all " * 100)
    answer = api.simulate_get("/readyz")
    assert (answer.status_code, answer.json["status"]) == (503, "dead")
    assert "cannot be reached" in answer.json["detail"]
    assert values(api.simulate_get("/metrics").text)["actionplan_record_up",] == 0


def require_slow(api: TestClient) -> None:
    """Ask whether the record answers, several times at once; nobody waits as long as the one look.

    Somebody else must lock the record until this returns.
    """
    answers = []
    asking = [
        threading.Thread(target=lambda: answers.append(api.simulate_get("/readyz")))
        for _ in range(4)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    looks = [thread for thread in threading.enumerate() if thread.name == "look"]
    assert len(looks) == 1, "the look still waits when all are answered"
    assert {(answer.status_code, answer.json["status"]) for answer in answers} == {(503, "slow")}


def require_ready(api: TestClient) -> None:
    """Wait for the end of the look, and until the record answers."""
    for thread in threading.enumerate():
        if thread.name == "look":
            thread.join()
    assert wait_until(lambda: api.simulate_get("/readyz").status_code == 200)


@pytest.mark.long
def test_a_file_that_another_process_has_locked_is_slow(api, actionplan):
    SqlStore(f"sqlite:///{actionplan.record}").close()
    with closing(sqlite3.connect(actionplan.record, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        require_slow(api)
        other.execute("ROLLBACK")
    require_ready(api)


@pytest.mark.server
def test_a_table_of_a_server_that_another_has_locked_is_slow(actionplan, postgresql_url):
    empty_record_on(postgresql_url)
    actionplan.configure(actionplan={"connection": postgresql_url}, api={})
    with closed_client(actionplan) as api:
        assert wait_until(lambda: api.simulate_get("/readyz").status_code == 200)
        with connected(postgresql_url) as other:
            other.execute("BEGIN")
            other.execute("LOCK TABLE actionplan_plan IN ACCESS EXCLUSIVE MODE")
            require_slow(api)
            other.rollback()
        require_ready(api)
        assert values(api.simulate_get("/metrics").text)["actionplan_record_up",] == 1


@contextmanager
def applier_process(actionplan: CommandLine) -> Iterator[None]:
    """Run the applier service; let it end by itself."""
    words = [PROGRAMS / "actionplan-applier", "--config-file", actionplan.configuration]
    with subprocess.Popen(words, env=actionplan.environment, stderr=subprocess.DEVNULL) as process:
        try:
            yield
            process.terminate()
            process.wait(PATIENCE_S)
        finally:
            process.kill()


@pytest.mark.long
def test_the_applier_shows_what_its_runs_cost(actionplan):
    configured(actionplan)
    stored(actionplan)
    actionplan.good("start", "last")
    with closing(ReservedPort()) as kept:
        port = kept.port
        with actionplan.configuration.open("a") as file:
            file.write(f"[watcher_applier]\nmetrics_port = {port}\n")

        def counted() -> dict[tuple[str, ...], float] | None:
            """Return the metrics once the run is counted, which is after it is on record."""
            url = f"http://127.0.0.1:{port}/metrics"
            found = values(requests.get(url, timeout=PATIENCE_S).text)
            return found if ("actionplan_plan_runs_total", "SUCCEEDED") in found else None

        with applier_process(actionplan):
            actionplan.good("watch", "last")
            found = wait_until(counted)
    assert found["actionplan_plan_runs_total", "SUCCEEDED"] == 1
    assert found["actionplan_attempt_seconds_count", "nop", "SUCCEEDED"] == 2
    assert found["actionplan_action_wait_seconds_count", "limits"] == 2
    assert found["actionplan_commit_seconds_count",] >= 2
    assert found["actionplan_workers_busy",] == 0


# Traces: a receiver of OTLP/HTTP in this process


class Collector(ThreadingHTTPServer):
    """Takes spans on a port of its own."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taker)
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.asked = threading.Event()

    @property
    def url(self) -> str:
        """The value of OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self.server_port}"

    def named(self, name: str) -> list[Span]:
        """Return the spans with a name, by their start."""
        found = [span for span in self.spans if span.name == name]
        return sorted(found, key=lambda span: span.start_time_unix_nano)


class Taker(BaseHTTPRequestHandler):
    """Reads one batch of spans."""

    server: Collector

    def do_POST(self) -> None:
        """Take a batch at the path that the standard names."""
        assert self.path == "/v1/traces"
        assert self.headers["Content-Type"] == "application/x-protobuf"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.set()
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.server.services.add(facts_of(resource.resource)["service.name"])
            for scope in resource.scope_spans:
                self.server.spans += scope.spans
        self.send_response(200)
        self.end_headers()
        self.wfile.write(ExportTraceServiceResponse().SerializeToString())

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def facts_of(span) -> dict[str, object]:
    """Return the attributes of a span; a list as such."""
    found = {}
    for pair in span.attributes:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        found[pair.key] = (
            [one.string_value for one in value.values] if kind == "array_value" else value
        )
    return found


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Yield a collector that takes spans."""
    with Collector() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def send_traces(actionplan: CommandLine, url: str) -> None:
    """Configure that traces are sent there."""
    actionplan.configure(
        actionplan={"simulator_speed": 1000},
        watcher_applier={"traces": "true"},
        watcher_actions__shell={"retries": 1},
    )
    actionplan.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = url


PRINTED = "swordfish"
#: Fails once. Messages of its failure name the command and the last line that it prints.
COMMAND = "printf 'sword%s\\n' fish; echo bye; test -e there || { touch there; exit 7; }"


def test_a_collector_gets_plan_actions_and_attempts(actionplan, collector):
    shell = {
        "name": "second try",
        "action_type": "shell",
        "input_parameters": {"command": COMMAND},
        "touches": ["node:n1"],
    }
    ending = {"name": "the end", "action_type": "nop", "touches": ["node:n1"]}
    options = {"weights": {"shell": 90}}
    file = actionplan.document("plan.yaml", shell, ending, name="night", options=options)
    send_traces(actionplan, collector.url)
    ended = actionplan("apply", file, "--yes")
    assert ended.code == 0, ended
    assert ended.err == ""
    (plan,), (action,), (nop,) = map(collector.named, ("plan", "action shell", "action nop"))
    first, second, third = collector.named("attempt")
    assert collector.services == {"actionplan"}
    assert len({span.trace_id for span in collector.spans}) == 1
    assert (plan.parent_span_id, action.parent_span_id) == (b"", plan.span_id)
    assert first.parent_span_id == second.parent_span_id == action.span_id
    assert third.parent_span_id == nop.span_id
    facts = facts_of(action)
    assert facts["actionplan.action.name"] == "second try"
    assert facts["actionplan.action.tokens"] == ["type:shell", "node:n1"]
    assert (first.status.code, "bye" in first.status.message) == (Status.STATUS_CODE_ERROR, True)
    assert [link.span_id for link in nop.links] == [action.span_id]
    assert not any(PRINTED in str(span) for span in collector.spans)


@pytest.mark.long
def test_without_the_option_nothing_of_it_is_imported(actionplan, collector):
    file = actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"})
    actionplan.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
    ended = actionplan.program("apply", file, "--yes", PYTHONPROFILEIMPORTTIME="1")
    assert ended.code == 0
    assert "applier.run.runner" in ended.err
    for name in ("opentelemetry", "google.protobuf", "applier.monitoring"):
        assert name not in ended.err
    assert not collector.asked.is_set()


@pytest.mark.long
def test_the_service_sends_traces_and_what_is_left_at_its_end(actionplan, collector):
    file = actionplan.document("plan.yaml", {"name": "a", "action_type": "nop"})
    # So that only the end sends.
    actionplan.environment["OTEL_BSP_SCHEDULE_DELAY"] = "100000000"
    send_traces(actionplan, collector.url)
    actionplan.good("create", file)
    actionplan.good("start", "last")
    with applier_process(actionplan):
        actionplan.good("watch", "last")
        assert collector.spans == []
    assert wait_until(lambda: len(collector.spans) == 3)
    assert sorted(span.name for span in collector.spans) == ["action nop", "attempt", "plan"]
