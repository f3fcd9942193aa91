# SPDX-License-Identifier: Apache-2.0
"""Sends spans to a collector over OTLP/HTTP, from a thread that no run waits for.

The endpoint, its headers, time limits and sizes are those of the environment variables ``OTEL_*``
of OpenTelemetry.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

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
