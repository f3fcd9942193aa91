# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the jobs of workers, and the workers themselves, in a database."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from applier.contracts import JobOffer, Report
from applier.storage import rows, schema, statements
from applier.storage.database import PartOfStore
from applier.storage.statements import Row, Write
from applier.storage.transactions import Kind, Rows, Transaction
from applier.store.worker_jobs import (
    OVER,
    SILENT_S,
    AttemptKey,
    HeldJob,
    JobTask,
    Served,
    StopReason,
    TakenJob,
    Worker,
    WorkerJob,
    WorkerJobState,
    machine_of,
)
from planner.plan.states import ActionState

T = TypeVar("T")
_WORKER_LINES = ("name", "host", "user", "version", "cloud")
#: Stands for the row of a worker that is not registered.
_NEW: Row = {"draining": 0, "started_at": None}


class WorkerJobs(PartOfStore):
    """The methods of the store for workers and their jobs."""

    def jobs_of(self, plan: str, states: Collection[WorkerJobState] = ()) -> list[WorkerJob]:
        """List the jobs of a plan that are in one of ``states``; all jobs if there are none."""
        over = bool(states) and set(states) <= set(OVER)
        statement = statements.JOBS_OVER if over else statements.JOBS_OF_PLAN

        def read(found: Rows) -> list[WorkerJob]:
            jobs = found.of(_JOBS, statement, {"plan_uuid": plan})
            return [job for job in jobs if not states or job.state in states]

        return self._database.listed(read)

    def unsent_jobs(self, plan: str, older_s: float) -> list[WorkerJob]:
        """List the TODO jobs of a plan that were last sent at least ``older_s`` seconds ago.

        They are recorded as sent now: the caller has to send a message about each.
        """
        which = {"plan_uuid": plan, "older_s": older_s}

        def look() -> list[WorkerJob]:
            with self._database.read() as transaction:
                found = transaction.read(statements.UNSENT_JOBS, which)
            if found:
                with self._database.write() as transaction:
                    transaction.write(statements.JOB_SENT, *(_key(_key_of(row)) for row in found))
            return [_job(row) for row in found]

        return self._database.tried(look)

    def stop_jobs(self, keys: Collection[AttemptKey], why: StopReason) -> None:
        """Record why jobs have to stop, unless they have a reason already.

        A TODO job also becomes CANCELLED. A LOST one gets the reason for the worker that verifies
        it. Jobs in other states, and unknown ones, are left as they are.
        """
        self._write(statements.STOP_JOB, *({**_key(key), "why": str(why)} for key in sorted(keys)))

    def fence_jobs(self, plan: str) -> None:
        """Make the jobs of a plan LOST whose leases ran out."""

        def fence() -> None:
            # Usually there is none, and reading locks no rows.
            with self._database.read() as transaction:
                found = transaction.read(statements.JOBS_OUT_OF_LEASE, {"plan_uuid": plan})
            if found:
                with self._database.write() as transaction:
                    transaction.write(statements.FENCE_JOB, *(_key(_key_of(row)) for row in found))

        self._database.tried(fence)

    def verify_job(self, key: AttemptKey, task: JobTask = JobTask.VERIFY) -> bool:
        """Offer a LOST job again, with the task VERIFY or FIND; return whether that was done.

        A TODO job with the task FIND can be changed to VERIFY.
        """
        return self._write(statements.VERIFY_JOB, {**_key(key), "to_do": str(task)}) > 0

    def jobs_to_find(self, worker: str, queues: Collection[str]) -> dict[AttemptKey, str]:
        """Return the TODO jobs with the task FIND, of these queues, for the machine of a worker.

        Each with the name of the worker that was lost.
        """

        def read(transaction: Transaction) -> dict[AttemptKey, str]:
            found = transaction.read(statements.JOBS_TO_FIND, _on_machine_of(worker))
            return {_key_of(row): row["worker"] for row in found if row["queue"] in queues}

        return self._database.reading(read)

    def take_job(
        self, key: AttemptKey, *, worker: str, token: str, lease_s: float
    ) -> TakenJob | None:
        """Take a job that is TODO, or that was taken with this ``token``; else return None.

        Its lease runs out after ``lease_s`` seconds. A job with the task FIND can be taken only by
        a worker on the machine of the lost one.
        """
        held = {**_key(key), "held_token": token}
        taking = {
            **held,
            **_on_machine_of(worker),
            "by_worker": rows.line(worker),
            "lease_s": lease_s,
        }

        def take(transaction: Transaction) -> TakenJob | None:
            if not transaction.write(statements.TAKE_JOB, taking):
                return None
            return _taken(transaction.read(statements.TAKEN_JOB, held)[0])

        return self._database.writing(take)

    def renew_jobs(self, held: Iterable[HeldJob], lease_s: float) -> None:
        """Renew the leases of jobs that are still held with their tokens."""
        renewed = [{**_key(job.key), "held_token": job.token, "lease_s": lease_s} for job in held]
        if renewed:
            self._write(statements.RENEW_JOB, *renewed)

    def held_jobs(self, worker: str) -> list[HeldJob]:
        """List the jobs that a worker was the last to take, including lost and ended ones."""

        def read(transaction: Transaction) -> list[HeldJob]:
            found = transaction.read(statements.HELD_JOBS, {"by_worker": rows.line(worker)})
            return [HeldJob(_key_of(row), row["token"], _stop(row)) for row in found]

        return self._database.reading(read)

    def end_job(self, key: AttemptKey, token: str, result: Mapping[str, Any]) -> bool:
        """Write the result of a job, if it is held with this token; return whether it was written.

        The call may be repeated, and then returns the same.
        """
        ending = {**_key(key), "held_token": token, "json": json.dumps(result)}
        return self._write(statements.END_JOB, ending) > 0

    def report_worker(self, worker: Worker) -> bool:
        """Register a worker, or record its report; return whether it has to take no more jobs.

        ``worker.draining`` is recorded; once true in the record, it stays so.
        """
        row = _worker_row(worker)
        which = {"by_worker": row["name"]}

        def report(transaction: Transaction) -> bool:
            transaction.write(statements.WORKER_HEARD, {**which, "busy": worker.running})
            [known] = transaction.read(statements.WORKER_DRAINING, which) or [_NEW]
            drains = bool(known["draining"]) or worker.draining
            if known is _NEW or drains != bool(known["draining"]):
                # The row is replaced, because the database account of a worker may insert and
                # delete its row, but not update this column.
                transaction.write(statements.FORGET_WORKER, which)
                own = {"draining": int(drains), "started": known["started_at"]}
                transaction.write(statements.REGISTER_WORKER, {**row, **own})
            return drains

        return self._database.writing(report)

    def remove_worker(self, name: str) -> None:
        """Remove a worker that has ended."""
        self._write(statements.FORGET_WORKER, {"by_worker": rows.line(name)})

    def workers(self) -> list[Worker]:
        """List the registered workers by name."""
        return self._database.listed(lambda found: found.of(_WORKERS, statements.WORKERS, {}))

    def served_queues(self) -> Mapping[str, Served]:
        """Return, by queue, how many workers serve it; draining and silent ones are not counted.

        A worker is silent if it has sent no report for :data:`SILENT_S` seconds.
        """
        return self._database.reading(
            lambda transaction: _served(
                transaction.read(statements.SERVED_QUEUES, {"silent_s": SILENT_S})
            )
        )

    def _write(self, statement: str, *changes: Mapping[str, Any]) -> int:
        """Run one statement in a transaction; return how many rows it changed."""
        return self._database.writing(lambda transaction: transaction.write(statement, *changes))


def job_writes(plan: str, report: Report, offer: JobOffer) -> Iterator[Write]:
    """Yield the writes for a job that the report of a start offers, or that of an end removes.

    Run them after the writes that insert the ended attempts, into which they copy the worker.
    """
    key = _key(AttemptKey(plan, report.uuid, offer.attempt))
    if report.starts:
        row = {**key, "to_queue": rows.line(offer.queue), "of_type": offer.action_type}
        yield Write(statements.OFFER_JOB, {**row, "json": json.dumps(offer.payload)}, 1)
    elif report.old is ActionState.ONGOING:
        yield Write(statements.KEEP_WORKER, key, None)
        yield Write(statements.REMOVE_JOB, key, None)


def _key(key: AttemptKey) -> dict[str, Any]:
    return {"plan_uuid": key.plan, "action_uuid": key.action, "number": key.attempt}


def _on_machine_of(worker: str) -> dict[str, Any]:
    """Return the bind parameters for the common beginning of all names of workers on a machine.

    It is the machine of ``worker``, with a colon.
    """
    beginning = f"{machine_of(worker)}:"
    return {"on_machine": beginning, "name_length": len(beginning)}


def _key_of(row: Row) -> AttemptKey:
    return AttemptKey(row["plan"], row["action"], row["attempt"])


def _stop(row: Row) -> StopReason | None:
    return None if row["stop"] is None else StopReason(row["stop"])


@rows.reading
def _job(row: Row) -> WorkerJob:
    return WorkerJob(
        **{name: row[name] for name in ("queue", "action_type", "worker")},
        key=_key_of(row),
        state=WorkerJobState(row["state"]),
        task=JobTask(row["task"]),
        age_s=(row["now"] - row["offered_at"]).total_seconds(),
        stop=_stop(row),
        result=None if row["result"] is None else _decoded(row["result"], dict),
    )


def _decoded(text: str, kind: type[T]) -> T:
    """Decode what a worker wrote as JSON; return an empty value of a type for any other type.

    No error is raised: a wrong result of one worker must not stop the reading of other jobs, and a
    job with a damaged payload must be able to end.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return kind()
    return found if isinstance(found, kind) else kind()


@rows.reading
def _taken(row: Row) -> TakenJob:
    payload = _decoded(row["payload"], dict)
    return TakenJob(JobTask(row["task"]), payload, _stop(row), row["lost_worker"])


def _worker_row(worker: Worker) -> dict[str, Any]:
    lines = {key: rows.line(getattr(worker, key)) for key in _WORKER_LINES}
    lists = {key: json.dumps(list(getattr(worker, key))) for key in ("queues", "types")}
    return {**worker._asdict(), **lines, **lists}


@rows.reading
def _worker(row: Row) -> Worker:
    found = {name: row[name] for name in Worker._fields if name in row}
    found["queues"], found["types"] = json.loads(row["queues"]), json.loads(row["types"])
    if not (schema.is_texts(found["queues"]) and schema.is_texts(found["types"])):
        raise ValueError("queues or types is not a list of texts")
    if not schema.is_process_id(row["pid"]):
        raise ValueError("pid is not the number of a process")
    silent_s = (row["now"] - row["heard_at"]).total_seconds()
    return Worker(**{**found, "draining": bool(row["draining"]), "silent_s": silent_s})


_JOBS = Kind("actionplan_worker_job", _job, "the job for attempt {attempt} of action {action}")
_WORKERS = Kind("actionplan_worker", _worker, "worker {name}")


def _served(found: Iterable[Row]) -> Mapping[str, Served]:
    """Return the sums of workers and places by queue."""
    served: dict[str, Served] = {}
    for row in found:
        for queue in filter(lambda name: isinstance(name, str), _decoded(row["queues"], list)):
            known = served.get(queue, Served(0, 0))
            served[queue] = Served(
                known.workers + int(row["number"]), known.places + int(row["places"])
            )
    return served
