# SPDX-License-Identifier: Apache-2.0
"""The store in a database: SQLite for one machine, PostgreSQL or MySQL for many.

Most methods are in :class:`applier.storage.plans.Plans`, :class:`applier.storage.list_pages.Pages`
and :class:`applier.storage.runs.Runs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from applier.contracts import HistoryEntry
from applier.storage import rows, schema, statements
from applier.storage.database import Database
from applier.storage.figures import RecordFigures
from applier.storage.history import Histories
from applier.storage.kept_events import KeptEvents
from applier.storage.list_pages import Pages
from applier.storage.plan_changes import PlanChanges
from applier.storage.plans import Plans
from applier.storage.purge_and_undelete import Retention
from applier.storage.runs import Runs
from applier.storage.state_changes import write_history
from applier.storage.statements import Row, UnreadableValue
from applier.storage.transactions import Kind, Transaction
from applier.storage.worker_jobs import WorkerJobs
from applier.store import Service
from applier.store.entries import NO_PLAN
from applier.store.plans import OverviewOf

T = TypeVar("T")


class SqlStore(
    Plans,
    PlanChanges,
    Pages,
    Runs,
    RecordFigures,
    Histories,
    KeptEvents,
    Retention,
    WorkerJobs,
):
    """Keeps plans in the database of a URL; may be used from several threads.

    Every method is one transaction, which is durable when the method returns. No method decides
    what runs next. The orders of saving, of queues, of the history and of events come from counters
    in the record, not from clocks. Every method raises :class:`applier.errors.DamagedRecord` if
    rows that it needs are damaged, and :class:`applier.errors.StoreError` if the record cannot be
    reached. It is then unknown whether a write was made.

    A SQLite file is created when it is opened. The tables of a server must have been
    created by ``actionplan db upgrade``. Raises StoreError when the record cannot be used.

    ``busy_timeout_s`` is for SQLite: how long to wait for another process that writes.

    When the connection to a server is lost, a call is repeated for up to ``patience_s`` seconds; 0
    means not at all. Added to that are at most 10 s for a connection, or 30 s for an answer. Each
    later call connects again. ``save_plan``, ``import_plan``, ``add_request``, ``add_history`` and
    ``import_durations`` are not repeated, because a second try could not find out whether the first
    was written: they raise StoreError. ``ping`` and ``figures`` are not repeated either, to answer
    soon. Any other call that raised StoreError may be repeated with the same arguments (``now`` may
    differ), and is written once.

    With ``overview_of``, the overview of each long plan is kept, so that it can be shown soon.
    """

    def __init__(
        self,
        connection: str,
        *,
        busy_timeout_s: float = 30.0,
        patience_s: float = 15.0,
        overview_of: OverviewOf | None = None,
    ) -> None:
        self._publishing = set()
        self._overview_of = overview_of
        self._database = Database(
            connection,
            busy_timeout_s=busy_timeout_s,
            patience_s=patience_s,
        )

    def close(self) -> None:
        """Close the connections; the store must not be used afterwards."""
        self._database.close()

    def of_one_moment(self, what: Callable[[], T]) -> T:
        """Return the result of a call that reads the store; all that it reads is of one moment."""
        return self._database.of_one_moment(what)

    def report_service(self, service: Service) -> None:
        """Register a service, or record a heartbeat of it."""
        row = service._asdict()

        def report(transaction: Transaction) -> None:
            transaction.write(statements.FORGET_SERVICE, {"service_uuid": service.uuid})
            transaction.insert("actionplan_service", row)

        self._database.writing(report)

    def remove_service(self, uuid: str) -> None:
        """Remove a service that has ended."""
        self._database.writing(
            lambda transaction: transaction.write(statements.FORGET_SERVICE, {"service_uuid": uuid})
        )

    def drain_worker(self, name: str, *, history: HistoryEntry | None = None) -> bool:
        """Mark a worker as draining, which it reads at its next report.

        Returns whether there is a worker of this name. The history entry has the plan
        :data:`applier.store.entries.NO_PLAN`. If the worker is marked already, nothing is
        written.
        """
        which = {"by_worker": rows.line(name)}

        def drain(transaction: Transaction) -> bool:
            if transaction.write(statements.DRAIN_WORKER, which) and history is not None:
                write_history(transaction, NO_PLAN, history)
            return bool(transaction.read(statements.WORKER_DRAINING, which))

        return self._database.writing(drain)

    def services(self) -> list[Service]:
        """List the registered services, latest heartbeat first."""
        return self._database.listed(lambda found: found.of(_SERVICES, statements.SERVICES, {}))


def _service(row: Row) -> Service:
    if not schema.is_process_id(row["pid"]):
        raise UnreadableValue("pid is not the number of a process")
    return Service(**row)


_SERVICES = Kind("actionplan_service", _service, "service {uuid}")
