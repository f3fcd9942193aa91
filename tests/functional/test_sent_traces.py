# SPDX-License-Identifier: Apache-2.0
"""Traces of runs, as a collector gets them: a receiver of OTLP/HTTP in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from command_line import CommandLine, wait_until
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from test_monitoring import applier_process


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
    assert facts_of(plan)["actionplan.plan.state"] == "SUCCEEDED"
    assert facts_of(plan)["actionplan.plan.actions"] == 2
    facts = facts_of(action)
    assert facts["actionplan.action.name"] == "second try"
    assert facts["actionplan.action.tokens"] == ["type:shell", "node:n1"]
    assert first.status.code == Status.STATUS_CODE_ERROR
    assert "bye" in first.status.message
    assert second.status.code == Status.STATUS_CODE_UNSET
    assert facts_of(second)["actionplan.attempt.number"] == 2
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
