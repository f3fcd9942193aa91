# SPDX-License-Identifier: Apache-2.0
"""Executes attempts at workers elsewhere: offers jobs, and follows them in the record."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from applier.contracts import JobOffer, Report
from applier.engines.threads import Threads
from applier.errors import DamagedRecord, StoreError
from applier.scheduling.queue_limits import queue_of
from applier.store.worker_jobs import AttemptKey, StopReason, WorkerJob, WorkerJobStore
from applier.workers.delivery import JobDelivery
from applier.workers.follower import JobFollower, offer_of
from applier.workers.payloads import payload_of

LOG = logging.getLogger(__name__)

#: How many jobs are told to stop in one transaction and one message.
STOPS_AT_ONCE = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteSettings:
    """How jobs are given to workers.

    A lease lasts ``lease_s`` seconds. A job that nobody took is sent again after ``resend_s``.
    ``route`` are the kinds of tokens that name queues. ``cloud`` and ``release`` are the names of
    the applier's cloud and of its release.
    """

    lease_s: float
    resend_s: float
    route: tuple[str, ...] = ()
    cloud: str
    release: str


class RemoteWorkers:
    """See :class:`applier.engines.executor.Executor`; each attempt is a job for some worker.

    ``known`` are the jobs of the plan that are on record already, by action. An adopted attempt
    that is not among them is followed in a thread of this process. ``tell`` is called with
    sentences about queues that nobody serves.
    """

    def __init__(
        self,
        maximum: int,
        done: Callable[[Report], None],
        *,
        plan: str,
        store: WorkerJobStore,
        delivery: JobDelivery,
        settings: RemoteSettings,
        known: Mapping[str, WorkerJob],
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.maximum, self.away_s = maximum, settings.lease_s
        self._plan, self._store, self._delivery = plan, store, delivery
        self._settings, self._known = settings, known
        self._offers: dict[str, JobOffer] = {}
        self._threads = Threads(maximum, done)
        self._followed_here: set[str] = set()
        self._follower = JobFollower(
            plan,
            store,
            delivery,
            done,
            lease_s=settings.lease_s,
            resend_s=settings.resend_s,
            tell=tell,
        )
        self._stops: queue.SimpleQueue[tuple[AttemptKey, StopReason] | None] = queue.SimpleQueue()
        self._stopper = threading.Thread(target=self._stop_all, name="job-stopper", daemon=True)

    def offer(self, task: Any) -> JobOffer:
        """Return the job of an attempt."""
        settings, action = self._settings, task.action
        payload = payload_of(task, settings.cloud, settings.release)
        to_queue = queue_of(action, settings.route)
        offer = JobOffer(task.attempt, to_queue, action.action_type, payload)
        self._offers[action.uuid] = offer
        return offer

    def grow(self, number: int, extra: int = 0) -> None:
        """Do nothing: workers have their places."""

    def replace(self) -> None:
        """Do nothing: a worker has one place less until the attempt ends."""

    def submit(self, task: Any) -> None:
        """Tell the workers about a job whose start is on record."""
        offer = self._offers.pop(task.action.uuid)
        key = AttemptKey(self._plan, task.action.uuid, offer.attempt)
        self._follower.follow(key, offer, at_worker=_runs_at_worker(task))
        self._delivery.send(offer.queue, key)

    def adopt(self, task: Any) -> None:
        """Follow the job of an attempt, or a command that goes on without one."""
        uuid = task.action.uuid
        job = self._known.get(uuid)
        if job is None:
            self._followed_here.add(uuid)
            self._threads.grow(len(self._followed_here), extra=len(self._followed_here))
            self._threads.adopt(task)
            return
        self._follower.follow(job.key, offer_of(job), at_worker=_runs_at_worker(task))

    def stop(self, task: Any, why: StopReason) -> None:
        """Write that a job is to stop, and tell its worker; in a thread of its own."""
        if task.action.uuid in self._followed_here:
            self._threads.stop(task, why)
            return
        if why is StopReason.TIMEOUT:
            task.time_out()
        else:
            task.stop.set()
        self._stops.put((AttemptKey(self._plan, task.action.uuid, task.attempt), why))

    def let_go(self, task: Any) -> bool:
        """Leave a job to the next applier: it goes on."""
        if task.action.uuid in self._followed_here:
            return self._threads.let_go(task)
        self._follower.leave(task.action.uuid)
        return True

    def __enter__(self) -> RemoteWorkers:
        self._follower.start()
        self._stopper.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stops.put(None)
        self._follower.close()
        self._threads.__exit__(*error)

    def _stop_all(self) -> None:
        """Tell jobs to stop, all that wait for it at once."""
        while (first := self._stops.get()) is not None:
            asked = [first, *self._waiting()]
            keys = [key for key, _ in asked]
            try:
                for why in {why for _, why in asked}:
                    self._store.stop_jobs([key for key, of in asked if of is why], why)
            except (StoreError, DamagedRecord) as reason:
                LOG.warning("%d actions are not told to stop yet: %s", len(keys), reason)
                for one in asked:
                    self._stops.put(one)
                self._follower.pause(1.0)
                continue
            self._delivery.look(keys)
            self._follower.wake()

    def _waiting(self) -> list[tuple[AttemptKey, StopReason]]:
        """Return the stops that wait besides the first, up to a limit or the end."""
        found: list[tuple[AttemptKey, StopReason]] = []
        with suppress(queue.Empty):
            while len(found) < STOPS_AT_ONCE - 1:
                if (asked := self._stops.get_nowait()) is None:
                    self._stops.put(None)
                    break
                found.append(asked)
        return found


def _runs_at_worker(task: Any) -> bool:
    """Return whether an attempt runs commands on the machine of its worker."""
    return None in task.plugin.runs_on(task.action.input_parameters)
