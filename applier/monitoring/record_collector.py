# SPDX-License-Identifier: Apache-2.0
"""The metrics of the record, read when Prometheus scrapes, and cached for a few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from applier.errors import DamagedRecord, StoreError
from applier.store.figures import Heartbeat, StoreFigures
from applier.store.worker_jobs import WorkerJobState
from planner.plan.states import PlanState

#: For how many seconds the figures of the record are cached: many scrapers cost one query.
KEPT_S = 5.0


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


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
        now: Callable[[], datetime] = utc_now,
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


def registry_of(collector: Collector) -> CollectorRegistry:
    """Return a new registry with one collector."""
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


def families(figures: StoreFigures, now: datetime) -> Iterator[GaugeMetricFamily]:
    """Yield the figures of the record as metric families; ages are those at ``now``."""
    plans = GaugeMetricFamily("actionplan_plans", "Plans in the record.", labels=["state"])
    for state, number in {**dict.fromkeys(map(str, PlanState), 0), **figures.plans}.items():
        plans.add_metric([state], number)
    yield plans
    yield from _actions(figures)
    yield GaugeMetricFamily(
        "actionplan_oldest_pending_plan_age_seconds",
        "Seconds since the last change of the plan that has waited longest for an applier; "
        "0 if none waits.",
        _age_s(figures.oldest_pending_at, now),
    )
    beats = "Seconds since the last heartbeat of the applier that runs a plan."
    yield _ages("actionplan_plan_heartbeat_age_seconds", beats, "plan", figures.claimants, now)
    beats = "Seconds since the last heartbeat of an applier service."
    yield _ages("actionplan_service_heartbeat_age_seconds", beats, "service", figures.services, now)
    running = GaugeMetricFamily(
        "actionplan_service_plans", "Plans that a service runs.", labels=["service", "host"]
    )
    for service in figures.services:
        running.add_metric([service.uuid, service.host], service.plans)
    yield running
    yield from _outboxes(figures, now)
    yield from _workers(figures)


def _workers(figures: StoreFigures) -> Iterator[GaugeMetricFamily]:
    jobs = GaugeMetricFamily(
        "actionplan_worker_jobs", "Jobs for workers on other machines.", labels=["state"]
    )
    for state, number in {**dict.fromkeys(map(str, WorkerJobState), 0), **figures.jobs}.items():
        jobs.add_metric([state], number)
    yield jobs
    texts = {
        "actionplan_worker_running_jobs": "Jobs that a worker has.",
        "actionplan_worker_places": "How many jobs a worker carries out at once.",
        "actionplan_worker_draining": "1 if a worker takes no more jobs, else 0.",
        "actionplan_worker_silent_seconds": "Seconds since a worker was heard of.",
    }
    values = [(w.running, w.places, w.draining, w.silent_s) for w in figures.workers]
    for place, (name, text) in enumerate(texts.items()):
        family = GaugeMetricFamily(name, text, labels=["worker", "host"])
        for worker, of_one in zip(figures.workers, values, strict=True):
            family.add_metric([worker.name, worker.host], float(of_one[place]))
        yield family


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


def _ages(
    name: str, text: str, label: str, beats: Sequence[Heartbeat], now: datetime
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label, "host"])
    for beat in beats:
        family.add_metric([beat.uuid, beat.host], _age_s(beat.at, now))
    return family


def _age_s(at: datetime | None, now: datetime) -> float:
    """Return the age of a time in seconds; 0 for None, and for a future time: clocks differ."""
    return 0.0 if at is None else max(0.0, (now - at).total_seconds())
