# SPDX-License-Identifier: Apache-2.0
"""The values that a record holds, and the part of it that runs of plans use, :class:`RunStore`.

:class:`applier.storage.sql_store.SqlStore` is the record.
"""

from __future__ import annotations

from applier.store.entries import Service
from applier.store.plans import TIMES, PlanFilters, PlanSummary, given
from applier.store.runs import Attempt, PlanStore, Reservation, RunStore

__all__ = (
    "TIMES",
    "Attempt",
    "PlanFilters",
    "PlanStore",
    "PlanSummary",
    "Reservation",
    "RunStore",
    "Service",
    "given",
)
