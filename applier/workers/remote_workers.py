# SPDX-License-Identifier: Apache-2.0
"""Executes attempts at workers elsewhere: offers jobs, and follows them in the record."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from applier.contracts import JobOffer, Report
from applier.engines.attempts import Threads
from applier.errors import DamagedRecord, StoreError
from applier.run.interrupted_actions import is_found_there
from applier.scheduling.submissions import queue_of
from applier.store.worker_jobs import AttemptKey, StopReason, WorkerJob
from applier.workers.follower import JobDelivery, JobFollower, offer_of
from applier.workers.payloads import payload_of

if TYPE_CHECKING:
    from applier.storage.sql import SqlStore


LOG = logging.getLogger(__name__)

#: How many jobs are stopped at most in one transaction per reason, and one message.
STOPS_AT_ONCE = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteSettings:
    """The settings of an applier that offers jobs to workers.

    A lease lasts ``lease_s`` seconds. A job that no worker took is sent again after ``resend_s``
    seconds. ``route`` are the kinds of tokens that name queues, the preferred one first. ``cloud``
    is the name of the applier's cloud, ``release`` the release of ActionPlan there.
    """

    lease_s: float
    resend_s: float
    route: tuple[str, ...] = ()
    cloud: str
    release: str


class RemoteWorkers:
    """See :class:`applier.engines.Executor`; each attempt is a job for some worker.

    ``known`` are the jobs of interrupted actions that are on record already, by action. An adopted
    attempt without such a job is followed in a thread of this process. ``tell`` is called with
    sentences about queues that no worker serves.
    """

    def __init__(
        self,
        maximum: int,
        done: Callable[[Report], None],
        *,
        plan: str,
        store: SqlStore,
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
        """Return the job of an attempt, to be recorded with its start before :meth:`submit`."""
        settings, action = self._settings, task.action
        payload = payload_of(task, settings.cloud, settings.release)
        to_queue = queue_of(action, settings.route)
        offer = JobOffer(task.attempt, to_queue, action.action_type, payload)
        self._offers[action.uuid] = offer
        return offer

    def grow(self, number: int, extra: int = 0) -> None:
        """Do nothing: the number of places is fixed at each worker."""

    def replace(self) -> None:
        """Do nothing: the attempt that hangs occupies a place of its worker until it ends."""

    def submit(self, task: Any) -> None:
        """Follow the job of an attempt whose start is on record, and send it to its queue."""
        offer = self._offers.pop(task.action.uuid)
        key = AttemptKey(self._plan, task.action.uuid, offer.attempt)
        self._follower.follow(key, offer, at_worker=is_found_there(task.action, task.plugin))
        self._delivery.send(offer.queue, key)

    def adopt(self, task: Any) -> None:
        """Follow an attempt that goes on: its job on record, else its commands in a thread here."""
        uuid = task.action.uuid
        job = self._known.get(uuid)
        if job is None:
            self._followed_here.add(uuid)
            self._threads.grow(len(self._followed_here), extra=len(self._followed_here))
            self._threads.adopt(task)
            return
        self._follower.follow(
            job.key, offer_of(job), at_worker=is_found_there(task.action, task.plugin)
        )

    def stop(self, task: Any, why: StopReason) -> None:
        """Queue the stop of a job; a thread records it, and sends a message to the worker."""
        if task.action.uuid in self._followed_here:
            self._threads.stop(task, why)
            return
        if why is StopReason.TIMEOUT:
            task.time_out()
        else:
            task.stop.set()
        self._stops.put((AttemptKey(self._plan, task.action.uuid, task.attempt), why))

    def let_go(self, task: Any) -> bool:
        """Stop following an attempt; return True if it goes on without this process.

        That is so for a job. Of an attempt that a thread here follows, only the commands go on.
        """
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
        """Write the queued stops into the record and send them, in batches, until None is queued.

        If the record cannot be written, queue a batch again after a second.
        """
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
        """Take at most STOPS_AT_ONCE - 1 further stops from the queue; leave the None in it."""
        found: list[tuple[AttemptKey, StopReason]] = []
        with suppress(queue.Empty):
            while len(found) < STOPS_AT_ONCE - 1:
                if (asked := self._stops.get_nowait()) is None:
                    self._stops.put(None)
                    break
                found.append(asked)
        return found
