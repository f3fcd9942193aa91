# SPDX-License-Identifier: Apache-2.0
"""The endpoints for monitoring: metrics, and whether the process and its database respond."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

import falcon
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)

from applier.api.access import BEGAN
from applier.api.endpoints import Call, Endpoint
from applier.assembly import Assembly
from applier.errors import DamagedRecord, StoreError
from applier.monitoring.record_metrics import RecordCollector

LOG = logging.getLogger(__name__)
T = TypeVar("T")

#: The maximum seconds for reading the figures of the database; Prometheus waits for 10.
FIGURES_S = 8.0
#: The upper bounds of the histogram of requests, in seconds.
REQUEST_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
#: The maximum seconds that ``/readyz`` takes, and those from which on the database counts as slow.
LIMIT_S, SLOW_S = 2.0, 0.5
DEAD = "The record cannot be reached; the log of the service says why."


class Requests:
    """Middleware that counts requests and measures how long they take, by route.

    The route is that of the application, such as ``/v2/plans/{plan}``; one that is refused before
    it is known, or that there is not, has the route ``other``.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._answered = Counter(
            "actionplan_http_requests",
            "Requests that were answered, by the status of the answer.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "actionplan_http_request_duration_seconds",
            "Seconds until the answer to a request begins; those for events wait for them.",
            ["method", "route"],
            buckets=REQUEST_S,
            registry=registry,
        )

    def process_request(self, request: falcon.Request, response: falcon.Response) -> None:  # noqa: ARG002
        """Note when the request began."""
        request.context.began = request.env.get(BEGAN, time.monotonic())

    def process_response(
        self, request: falcon.Request, response: falcon.Response, *_: object
    ) -> None:
        """Count the answer."""
        method = request.method if request.method in falcon.HTTP_METHODS else "other"
        route = request.uri_template or "other"
        self._answered.labels(method, route, response.status_code).inc()
        took_s = time.monotonic() - request.context.began
        self._seconds.labels(method, route).observe(took_s)


def endpoints(
    assembly: Assembly, of_runs: Callable[[], bytes] | None, registry: CollectorRegistry
) -> tuple[Endpoint, ...]:
    """Return the endpoints; ``registry`` has the metrics of the process.

    ``of_runs`` returns the metrics of the process that runs plans, in the text format of
    Prometheus; None to leave them out.
    """
    figures = SharedCall(lambda: assembly.store.figures(), FIGURES_S)
    registry.register(RecordCollector(figures))
    readiness = Readiness(lambda: assembly.store.ping())

    @Endpoint("GET /metrics", "metrics:read", media=CONTENT_TYPE_LATEST)
    def metrics(_call: Call) -> bytes:
        own = generate_latest(registry)
        return own if of_runs is None else own + of_runs()

    return metrics, health, Endpoint("GET /readyz", None)(readiness)


@Endpoint("GET /healthz", None)
def health(_call: Call) -> dict[str, str]:
    """Respond with the status ``ok``; the database is not read."""
    return {"status": "ok"}


class Readiness:
    """Answers ``/readyz``: the state of the database, ``ready``, ``slow`` or ``dead``.

    The status is 200 if the database responds within LIMIT_S, even slowly. It is 503 with
    ``slow`` if it does not respond in time, and 503 with ``dead`` if it raises an error.
    """

    def __init__(self, ping: Callable[[], None]) -> None:
        self._look = SharedCall(ping, LIMIT_S)
        self._status = "ready"

    def __call__(self, call: Call) -> dict[str, Any]:
        """Query the database, and respond within LIMIT_S seconds."""
        began = time.monotonic()
        status, told, detail = self._found()
        seconds = time.monotonic() - began
        if status != self._status:
            LOG.log(logging.INFO if status == "ready" else logging.WARNING, "%s", told)
        self._status = status
        if status == "ready":
            status = "slow" if seconds >= SLOW_S else status
            return {"status": status, "seconds": round(seconds, 3)}
        call.response.status = falcon.HTTP_503
        return {"status": status, "seconds": round(seconds, 3), "detail": detail}

    def _found(self) -> tuple[str, str, str]:
        """Return the status, a sentence about it for the log, and one for who asks."""
        try:
            self._look()
        except TimeoutError:
            detail = f"The record has not answered for {LIMIT_S:g} s."
            return "slow", detail, detail
        except (StoreError, DamagedRecord) as reason:
            return "dead", str(reason), DEAD
        return "ready", "The record answers again.", ""


class SharedCall(Generic[T]):
    """Calls ``look`` in a daemon thread, and waits up to ``limit_s`` seconds for its result.

    While a call runs, all callers wait for that call, so that a database that hangs blocks only one
    thread.
    """

    def __init__(self, look: Callable[[], T], limit_s: float) -> None:
        self._look, self._limit_s = look, limit_s
        self._lock = threading.Lock()
        self._going: Future[T] | None = None

    def __call__(self) -> T:
        """Return the result of ``look``, or raise its error; raise TimeoutError after the limit."""
        with self._lock:
            if self._going is None or self._going.done():
                self._going = Future()
                threading.Thread(
                    target=self._run, args=(self._going,), name="look", daemon=True
                ).start()
            going = self._going
        return going.result(self._limit_s)

    def _run(self, going: Future[T]) -> None:
        try:
            going.set_result(self._look())
        except BaseException as error:
            going.set_exception(error)
            if not isinstance(error, StoreError | DamagedRecord):
                raise  # a bug: it is raised in this thread as well as in the waiting callers
