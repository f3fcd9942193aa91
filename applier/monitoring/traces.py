# SPDX-License-Identifier: Apache-2.0
"""A run as a trace of OpenTelemetry: spans of the plan, its actions and their attempts.

Each run is a trace, also that of a resumed plan. Names of spans have few values; the name of an
action is an attribute. The span of an action has one link, to the action before it that ended last.

Spans are sent to a collector over OTLP/HTTP, from a thread that no run waits for. The endpoint, its
headers, time limits and sizes are those of the environment variables ``OTEL_*`` of OpenTelemetry.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode, Tracer
from opentelemetry.trace.propagation import set_span_in_context

from applier.contracts import Report
from applier.storage.rows import storable
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState, PlanState

#: A plan in one of these still runs.
_RUNNING = (PlanState.ONGOING, PlanState.CANCELLING)
#: The states whose spans have the status ERROR; those that were skipped or cancelled have none.
_ERRORS = (ActionState.FAILED, ActionState.UNKNOWN, PlanState.FAILED)


class TracedRun:
    """A listener that makes the spans of one run of one plan, after each commit.

    Joins have no spans. An action's span lasts from its first start to its last end, including the
    delays between its attempts; that of an action that did not start lasts no time. As a context
    manager, it ends all open spans at the end of the block; if the block raised, their status is
    ERROR.
    """

    def __init__(
        self, tracer: Tracer, plan: ActionPlan, clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._tracer, self._clock = tracer, clock
        self._actions = {action.uuid: action for action in plan.actions}
        facts = {
            "uuid": plan.uuid,
            "name": plan.name,
            "planner": plan.planner,
            "cloud": plan.cloud,
            "state": plan.state,
            "actions": sum(action.action_type != JOIN for action in plan.actions),
        }
        self._plan = tracer.start_span("plan", Context(), start_time=clock())
        _describe(self._plan, "plan", facts)
        #: By uuid of action: the spans of actions and of attempts that have not ended, and the
        #: numbers of the last attempts.
        self._open: dict[str, Span] = {}
        self._attempts: dict[str, Span] = {}
        self._numbers = {action.uuid: action.attempts for action in plan.actions}
        #: By uuid of action: the place of its end in the order of all ends, and its span. A join
        #: has those of the action before it that ended last.
        self._ended: dict[str, tuple[int, SpanContext]] = {}

    def __enter__(self) -> TracedRun:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        at = self._clock()
        for span in (*self._attempts.values(), *self._open.values(), self._plan):
            if kind is not None and span.is_recording():
                span.set_status(Status(StatusCode.ERROR, f"the run broke off: {kind.__name__}"))
            if span.is_recording():
                span.end(at)

    def on_reports(self, reports: Iterable[Report]) -> None:
        """Start and end the spans of actions and attempts."""
        at = self._clock()
        for report in reports:
            action = self._actions.get(report.uuid)
            if action is None:
                continue
            if action.action_type == JOIN:
                if (last := self._last_before(action)) is not None:
                    self._ended[action.uuid] = last
            elif report.state is ActionState.ONGOING:
                self._start(action, report, at)
            else:
                self._end(action, report, at)

    def on_plan(self, state: PlanState, message: str | None) -> None:
        """Set the state of the plan in its span; if the run has ended, end all open spans."""
        message = storable(message)
        _describe(self._plan, "plan", {"state": state, "message": message})
        if state not in _RUNNING:
            at = self._clock()
            # Actions that wait for a retry: the next run makes new spans for them.
            for span in self._open.values():
                span.end(at)
            self._open.clear()
            _end(self._plan, state, message, at)

    def _start(self, action: Action, report: Report, at: int) -> None:
        """Start the span of an attempt, and before the first one that of its action."""
        if action.uuid not in self._open:
            self._open[action.uuid] = self._span_of(action, at)
        if report.old is not ActionState.UNKNOWN:  # then the attempt before goes on
            self._numbers[action.uuid] += 1
        span = self._child("attempt", self._open[action.uuid], at)
        _describe(span, "attempt", {"number": self._numbers[action.uuid], "state": report.state})
        self._attempts[action.uuid] = span
        _describe(self._open[action.uuid], "action", {"state": report.state})

    def _end(self, action: Action, report: Report, at: int) -> None:
        """End the span of an attempt, and that of its action unless it is retried."""
        state, message = report.state, storable(report.message)
        again = state is ActionState.PENDING
        attempt = self._attempts.pop(action.uuid, None)
        if attempt is not None:
            left = ActionState.FAILED if again else state  # as in the record of the attempt
            _describe(attempt, "attempt", {"state": left, "outcome": report.outcome})
            _end(attempt, left, message, at)
        if again and action.uuid not in self._open:
            return  # an interrupted attempt of an earlier run has not done its work
        span = self._open.pop(action.uuid, None) or self._span_of(action, at)
        facts = {"outcome": report.outcome, "reason": report.state_reason, "message": message}
        _describe(span, "action", {"state": state, **facts})
        if again:
            self._open[action.uuid] = span
            return
        self._ended[action.uuid] = (len(self._ended), span.get_span_context())
        _end(span, state, message, at)

    def _span_of(self, action: Action, at: int) -> Span:
        """Start the span of an action, with a link to the predecessor that ended last."""
        last = self._last_before(action)
        links = [] if last is None else [Link(last[1])]
        span = self._child(f"action {action.action_type}", self._plan, at, links)
        facts = {"uuid": action.uuid, "name": action.label, "type": action.action_type}
        _describe(span, "action", {**facts, "tokens": action.tokens})
        return span

    def _last_before(self, action: Action) -> tuple[int, SpanContext] | None:
        ended = (self._ended[uuid] for uuid in action.before() if uuid in self._ended)
        return max(ended, key=lambda one: one[0], default=None)

    def _child(self, name: str, parent: Span, at: int, links: Iterable[Link] = ()) -> Span:
        around = set_span_in_context(parent, Context())
        return self._tracer.start_span(name, around, links=list(links), start_time=at)


def _describe(span: Span, what: str, facts: Mapping[str, Any]) -> None:
    known = {f"actionplan.{what}.{name}": fact for name, fact in facts.items() if fact is not None}
    span.set_attributes(known)


def _end(span: Span, state: ActionState | PlanState, message: str | None, at: int) -> None:
    if state in _ERRORS:
        span.set_status(Status(StatusCode.ERROR, message))
    span.end(at)


LOG = logging.getLogger(__name__)
#: The SDK logs here: wrong variables, each failed batch, and each span that its full queue drops.
SDK_LOG = logging.getLogger("opentelemetry")
#: The logger to which the SDK writes a malformed header, whose text may contain a password.
_ABOUT_HEADERS = "opentelemetry.util.re"

#: The seconds that the end of :func:`sent` waits until the last spans have been sent.
LAST_BATCHES_S = 5.0


class Troubles(logging.Handler):
    """Logs the first warning of the SDK, and no more until a batch of spans has been sent again.

    ``told`` is true from that warning on until then.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told = False

    def emit(self, record: logging.LogRecord) -> None:
        """Log one warning for the record of the SDK, unless ``told`` is set."""
        if not self.told:
            self.told = True
            secret = record.name == _ABOUT_HEADERS
            why = "a variable of headers is malformed" if secret else record.getMessage()
            LOG.warning("Traces may be lost, the runs go on: %s", why)

    def over(self) -> None:
        """Log that spans are sent again, if ``told`` is set, and reset it."""
        if self.told:
            self.told = False
            LOG.info("Traces are sent again")


class ReportingExporter(SpanExporter):
    """Sends batches of spans by another exporter, and resets ``troubles`` after each success."""

    def __init__(self, exporter: SpanExporter, troubles: Troubles) -> None:
        self._exporter, self._troubles = exporter, troubles

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send a batch; return whether it was received."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._troubles.over()
        return result

    def shutdown(self) -> None:
        """Shut down the other exporter, which gives up the batch that it is sending."""
        self._exporter.shutdown()


@contextmanager
def sent() -> Iterator[Tracer | None]:
    """Yield a tracer whose spans are sent, or None if the variables are wrong, which is logged.

    The end of the block sends the remaining spans, and waits up to :data:`LAST_BATCHES_S` for that.
    Spans that are not sent by then are lost, which is logged.
    """
    troubles = Troubles()
    with _heard(troubles):
        try:
            provider = _provider(troubles)
        except (OSError, RuntimeError, ValueError) as reason:
            LOG.error("[watcher_applier] traces: none are sent: %s", reason)
            yield None
            return
        troubles.told = False  # of variables: whether the collector takes spans is another matter
        try:
            yield provider.get_tracer("actionplan")
        finally:
            ending = threading.Thread(target=provider.shutdown, name="traces", daemon=True)
            ending.start()
            ending.join(LAST_BATCHES_S)
            if ending.is_alive() and not troubles.told:
                LOG.warning("The last traces are lost: no answer within %g s", LAST_BATCHES_S)


@contextmanager
def _heard(troubles: Troubles) -> Iterator[None]:
    """Pass the warnings that the SDK logs to ``troubles`` and no other handler, in a block."""
    before = SDK_LOG.level, SDK_LOG.propagate
    SDK_LOG.addHandler(troubles)
    SDK_LOG.setLevel(logging.WARNING)
    SDK_LOG.propagate = False
    try:
        yield
    finally:
        SDK_LOG.removeHandler(troubles)
        SDK_LOG.setLevel(before[0])
        SDK_LOG.propagate = before[1]


def _provider(troubles: Troubles) -> TracerProvider:
    """Return a tracer provider with a bounded queue, which is not registered as the global one."""
    named = Resource.create({SERVICE_NAME: "actionplan"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=named, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(ReportingExporter(OTLPSpanExporter(), troubles)))
    return provider
