# SPDX-License-Identifier: Apache-2.0
"""Marks workers in a database as draining, and writes who did that into the history."""

from __future__ import annotations

from applier.contracts import HistoryEntry
from applier.storage import rows
from applier.storage.database import Database
from applier.storage.state_changes import write_history
from applier.storage.worker_job_statements import DRAIN, DRAINING
from applier.store.retention import NO_PLAN


class WorkerDrains:
    """The method of the store that drains workers."""

    _database: Database

    def drain_worker(self, name: str, *, history: HistoryEntry | None = None) -> bool:
        """See :meth:`applier.store.worker_jobs.WorkerJobStore.drain_worker`."""
        which = {"by_worker": rows.line(name)}

        def drain() -> bool:
            with self._database.write() as transaction:
                if transaction.write(DRAIN, which) and history is not None:
                    write_history(transaction, NO_PLAN, history)
                return bool(transaction.read(DRAINING, which))

        return self._database.tried(drain)
