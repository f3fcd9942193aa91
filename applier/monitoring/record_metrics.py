# SPDX-License-Identifier: Apache-2.0
"""The metrics of the record, read when Prometheus scrapes, and cached for a few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from applier.errors import DamagedRecord, StoreError
from applier.store.entries import StoreFigures
from applier.store.worker_jobs import WorkerJobState
from planner.plan.states import PlanState

T = TypeVar("T")
#: For how many seconds the figures of the record are cached: many scrapers cost one query.
KEPT_S = 5.0


class RecordCollector(Collector):
    """Converts the figures that ``read`` returns to metrics; caches them for ``kept_s`` seconds.

    ``read`` may raise StoreError, DamagedRecord and TimeoutError. Then ``actionplan_record_up`` is
    0, and the metrics of plans, actions, services, events and workers are left out.
    """

    def __init__(
        self,
        read: Callable[[], StoreFigures],
        *,
        kept_s: float = KEPT_S,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._read, self._kept_s, self._clock, self._now = read, kept_s, clock, now
        self._lock = threading.Lock()
        self._kept: tuple[float, StoreFigures | None, float] | None = None

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return no metrics, so that registering the collector does not read the record."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics of the record; read it first if the cached ones are too old."""
        figures, seconds = self._figures()
        up = "1 if the record answered in time, else 0."
        yield GaugeMetricFamily("actionplan_record_up", up, float(figures is not None))
        took = "Seconds that the record took to answer the last query for these figures."
        yield GaugeMetricFamily("actionplan_record_query_seconds", took, seconds)
        if figures is not None:
            yield from families(figures, self._now())

    def _figures(self) -> tuple[StoreFigures | None, float]:
        """Return the cached figures, None if the read failed, and the seconds that it took."""
        with self._lock:
            began = self._clock()
            if self._kept is None or began - self._kept[0] >= self._kept_s:
                try:
                    found = self._read()
                except (StoreError, DamagedRecord, TimeoutError):
                    found = None
                ended = self._clock()
                self._kept = (ended, found, ended - began)
            return self._kept[1:]


def families(figures: StoreFigures, now: datetime) -> Iterator[GaugeMetricFamily]:
    """Yield the figures of the record as metric families; ages are those at ``now``."""
    plans = GaugeMetricFamily("actionplan_plans", "Plans in the record.", labels=["state"])
    for state, number in {**dict.fromkeys(map(str, PlanState), 0), **figures.plans}.items():
        plans.add_metric([state], number)
    yield plans
    text = "Plans of which nobody knows whether an action was done."
    yield GaugeMetricFamily("actionplan_plans_in_doubt", text, figures.in_doubt)
    yield from _actions(figures)
    yield GaugeMetricFamily(
        "actionplan_oldest_pending_plan_age_seconds",
        "Seconds since the last change of the plan that has waited longest for an applier; "
        "0 if none waits.",
        _age_s(figures.oldest_pending_at, now),
    )
    yield from _beats(figures, now)
    yield from _outboxes(figures, now)
    yield from _workers(figures)


def _workers(figures: StoreFigures) -> Iterator[GaugeMetricFamily]:
    jobs = GaugeMetricFamily(
        "actionplan_worker_jobs", "Jobs for workers on other machines.", labels=["state"]
    )
    for state, number in {**dict.fromkeys(map(str, WorkerJobState), 0), **figures.jobs}.items():
        jobs.add_metric([state], number)
    yield jobs
    workers = _by_host(figures.workers)
    for name, text, value in (
        ("actionplan_workers", "Workers that are registered.", len),
        ("actionplan_worker_running_jobs", "Jobs that workers have.", _sum_of("running")),
        ("actionplan_worker_places", "How many jobs workers do at once.", _sum_of("places")),
        ("actionplan_worker_draining", "Workers that take no more jobs.", _sum_of("draining")),
        (
            "actionplan_worker_silent_seconds",
            "Seconds since the worker was heard of that has been silent the longest.",
            lambda of_one: max(worker.silent_s for worker in of_one),
        ),
    ):
        yield _of_hosts(name, text, workers, value)


def _beats(figures: StoreFigures, now: datetime) -> Iterator[GaugeMetricFamily]:
    plans, services = _by_host(figures.claimants), _by_host(figures.services)
    yield _of_hosts(
        "actionplan_plan_heartbeat_age_seconds",
        "Seconds since the last heartbeat for a running plan, that of the oldest of them.",
        plans,
        lambda beats: max(_age_s(beat.at, now) for beat in beats),
    )
    yield _of_hosts(
        "actionplan_service_heartbeat_age_seconds",
        "Seconds since the latest heartbeat of an applier service.",
        services,
        lambda beats: min(_age_s(beat.at, now) for beat in beats),
    )
    text = "Plans that applier services run."
    yield _of_hosts("actionplan_service_plans", text, services, _sum_of("plans"))


def _by_host(found: Iterable[T]) -> dict[str, list[T]]:
    """Return values by their host: names of processes and of plans are not bounded."""
    by_host: dict[str, list[T]] = {}
    for one in found:
        by_host.setdefault(cast("Any", one).host, []).append(one)
    return by_host


def _sum_of(name: str) -> Callable[[Iterable[Any]], float]:
    return lambda found: float(sum(getattr(one, name) for one in found))


def _of_hosts(
    name: str, text: str, by_host: Mapping[str, list[T]], value: Callable[[list[T]], float]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["host"])
    for host, found in by_host.items():
        family.add_metric([host], value(found))
    return family


def _outboxes(figures: StoreFigures, now: datetime) -> Iterator[GaugeMetricFamily]:
    outboxes = figures.outboxes
    texts = {
        "actionplan_events_waiting": "Events that a receiver has not got yet.",
        "actionplan_events_held_back_plans": "Plans with an event that a receiver has refused.",
        "actionplan_events_dead": "Events that were given up; see: actionplan event list --dead.",
        "actionplan_oldest_event_age_seconds": "Age of the oldest event that a receiver lacks.",
    }
    values = [(o.waiting, o.held_back, o.dead, _age_s(o.oldest_at, now)) for o in outboxes]
    for place, (name, text) in enumerate(texts.items()):
        family = GaugeMetricFamily(name, text, labels=["subscription"])
        for outbox, of_one in zip(outboxes, values, strict=True):
            family.add_metric([outbox.subscription], of_one[place])
        yield family


def _actions(figures: StoreFigures) -> Iterator[GaugeMetricFamily]:
    actions = GaugeMetricFamily(
        "actionplan_actions",
        "Actions of the plans that were started and have not ended.",
        labels=["action_type", "state"],
    )
    for (kind, state), number in sorted(figures.actions.items()):
        actions.add_metric([kind, state], number)
    yield actions
    yield GaugeMetricFamily(
        "actionplan_actions_truncated",
        "1 if there are more such actions than are counted, else 0.",
        float(not figures.are_all_counted),
    )


def _age_s(at: datetime | None, now: datetime) -> float:
    """Return the age of a time in seconds; 0 for None, and for a future time: clocks differ."""
    return 0.0 if at is None else max(0.0, (now - at).total_seconds())
