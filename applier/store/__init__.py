# SPDX-License-Identifier: Apache-2.0
"""The interface of stores, which :class:`Store` composes of parts, and the values that they hold.

Methods return on success and raise an error on failure. No method decides what runs next.
"""

from __future__ import annotations

from typing import Protocol

from applier.store.answers import AnswerStore
from applier.store.approvals import ApprovalStore
from applier.store.archives import ArchiveStore
from applier.store.figures import FiguresStore
from applier.store.operators import HistoryStore, OperatorStore
from applier.store.pages import PageStore
from applier.store.plans import TIMES, PlanFilters, PlanStore, PlanSummary, given
from applier.store.retention import RetentionStore
from applier.store.runs import Attempt, Reservation, RunStore
from applier.store.samples import DurationStore
from applier.store.services import Service, ServiceStore
from applier.store.start_times import StartTimeStore
from applier.store.subscriptions import EventStore
from applier.store.worker_jobs import WorkerJobStore

__all__ = (
    "TIMES",
    "Attempt",
    "HistoryStore",
    "OperatorStore",
    "PlanFilters",
    "PlanStore",
    "PlanSummary",
    "Reservation",
    "RunStore",
    "Service",
    "ServiceStore",
    "Store",
    "given",
)


class Store(
    RunStore,
    PlanStore,
    PageStore,
    OperatorStore,
    HistoryStore,
    ServiceStore,
    FiguresStore,
    EventStore,
    RetentionStore,
    DurationStore,
    AnswerStore,
    ApprovalStore,
    ArchiveStore,
    StartTimeStore,
    WorkerJobStore,
    Protocol,
):
    """Stores plans. Every method is one transaction, which is durable when the method returns.

    Every method raises :class:`applier.errors.DamagedRecord` if rows that it needs are damaged, and
    :class:`applier.errors.StoreError` if the store cannot be reached. It is then unknown whether a
    write was made. Repeating the call, even with another ``now``, never writes twice, except for
    ``save_plan``, ``import_plan``, ``add_request``, ``add_history`` and ``import_durations``.

    The orders of saving, of queues, of the history and of events come from counters in the store,
    not from clocks. ``tests/contract`` has the suites that every implementation has to pass.
    """
