# SPDX-License-Identifier: Apache-2.0
"""The statements on jobs of workers: each that changes a job states what the job must be."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.column_types import Moment
from applier.storage.compiled import Deferred, word, words
from applier.storage.database_clock import time_in
from applier.storage.tables import attempts, worker_jobs, workers
from applier.store.worker_jobs import JobTask, WorkerJobState

_TODO, _DOING = word(WorkerJobState.TODO), word(WorkerJobState.DOING)
_LOST, _FIND = word(WorkerJobState.LOST), word(JobTask.FIND)
_LEASE = time_in(bindparam("lease_s", type_=sa.Double))


def _this() -> sa.ColumnElement[bool]:
    return sa.and_(
        worker_jobs.c.plan == bindparam("plan_uuid"),
        worker_jobs.c.action == bindparam("action_uuid"),
        worker_jobs.c.attempt == bindparam("number"),
    )


def _held() -> sa.ColumnElement[bool]:
    return sa.and_(
        _this(), worker_jobs.c.state == _DOING, worker_jobs.c.token == bindparam("held_token")
    )


def _of_plan() -> sa.ColumnElement[bool]:
    return worker_jobs.c.plan == bindparam("plan_uuid")


def _old() -> sa.ColumnElement[bool]:
    sent_before = time_in(-bindparam("older_s", type_=sa.Double))
    return sa.and_(_of_plan(), worker_jobs.c.state == _TODO, worker_jobs.c.sent_at <= sent_before)


def _lost_on_machine() -> sa.ColumnElement[bool]:
    """The worker that had a job last was on a machine: its name begins with that of the machine."""
    length = bindparam("name_length", type_=sa.Integer)
    return sa.func.substr(worker_jobs.c.worker, 1, length) == bindparam("on_machine")


def _out_of_lease() -> sa.ColumnElement[bool]:
    return sa.and_(worker_jobs.c.state == _DOING, worker_jobs.c.leased_until < time_in())


#: Offer a job.
OFFER = Deferred(
    lambda: (
        sa.insert(worker_jobs)
        .inline()
        .values(
            plan=bindparam("plan_uuid"),
            action=bindparam("action_uuid"),
            attempt=bindparam("number"),
            queue=bindparam("to_queue"),
            action_type=bindparam("of_type"),
            task=word(JobTask.ACT),
            state=_TODO,
            payload=bindparam("json"),
            offered_at=time_in(),
            sent_at=time_in(),
        )
    )
)
#: Keep with an attempt that has ended which worker took its job last.
KEEP_WORKER = Deferred(
    lambda: (
        sa.update(attempts)
        .where(
            attempts.c.plan == bindparam("plan_uuid"),
            attempts.c.action == bindparam("action_uuid"),
            attempts.c.number == bindparam("number"),
        )
        .values(worker=sa.select(worker_jobs.c.worker).where(_this()).scalar_subquery())
    )
)
#: Remove a job whose end is on record.
REMOVE = Deferred(lambda: sa.delete(worker_jobs).where(_this()))
#: Remove all jobs of a plan that has ended.
REMOVE_ALL = Deferred(lambda: sa.delete(worker_jobs).where(_of_plan()))
#: The jobs of a plan, without their payloads, and without times that workers write.
OF_PLAN = Deferred(
    lambda: sa.select(
        worker_jobs.c.plan,
        worker_jobs.c.action,
        worker_jobs.c.attempt,
        worker_jobs.c.queue,
        worker_jobs.c.action_type,
        worker_jobs.c.state,
        worker_jobs.c.task,
        worker_jobs.c.offered_at,
        worker_jobs.c.worker,
        worker_jobs.c.stop,
        worker_jobs.c.result,
        time_in().label("now"),
    ).where(_of_plan())
)
#: Those that are over.
OVER_OF_PLAN = Deferred(lambda: OF_PLAN().where(worker_jobs.c.state.not_in([_TODO, _DOING])))
#: Those that wait for a worker, and were sent some seconds ago.
OLD = Deferred(lambda: OF_PLAN().where(_old()))
#: Note that a job is sent now.
SENT = Deferred(lambda: sa.update(worker_jobs).where(_this()).values(sent_at=time_in()))
#: Tell a job to stop.
STOP = Deferred(
    lambda: (
        sa.update(worker_jobs)
        .where(
            _this(),
            sa.or_(
                worker_jobs.c.state == _TODO,
                sa.and_(
                    worker_jobs.c.state.in_([_DOING, _LOST]), worker_jobs.c.stop.is_(sa.null())
                ),
            ),
        )
        .values(
            stop=sa.func.coalesce(worker_jobs.c.stop, bindparam("why")),
            state=sa.case(
                (worker_jobs.c.state == _TODO, word(WorkerJobState.CANCELLED)),
                else_=worker_jobs.c.state,
            ),
        )
    )
)
#: The jobs of a plan whose leases ran out.
OUT_OF_LEASE = Deferred(
    lambda: sa.select(worker_jobs.c.plan, worker_jobs.c.action, worker_jobs.c.attempt).where(
        _of_plan(), _out_of_lease()
    )
)
#: Fence a job whose lease ran out: no result of it is accepted any more.
FENCE = Deferred(
    lambda: (
        sa.update(worker_jobs)
        .where(_this(), _out_of_lease())
        .values(state=word(WorkerJobState.LOST), token=sa.null(), leased_until=sa.null())
    )
)
#: Offer a job that was lost, to be found or verified.
VERIFY = Deferred(
    lambda: (
        sa.update(worker_jobs)
        .where(
            _this(),
            sa.or_(
                worker_jobs.c.state == _LOST,
                sa.and_(
                    worker_jobs.c.state == _TODO,
                    worker_jobs.c.task == _FIND,
                    bindparam("to_do") != _FIND,
                ),
            ),
        )
        .values(state=_TODO, task=bindparam("to_do"), sent_at=time_in())
    )
)
#: The jobs that are to be found on a machine.
TO_FIND = Deferred(
    lambda: sa.select(
        worker_jobs.c.plan, worker_jobs.c.action, worker_jobs.c.attempt, worker_jobs.c.queue
    ).where(worker_jobs.c.state == _TODO, worker_jobs.c.task == _FIND, _lost_on_machine())
)
#: Take a job. Repeated with the same token, it does no harm.
TAKE = Deferred(
    lambda: (
        sa.update(worker_jobs)
        .where(
            _this(),
            sa.or_(
                sa.and_(
                    worker_jobs.c.state == _TODO,
                    sa.or_(worker_jobs.c.task != _FIND, _lost_on_machine()),
                ),
                sa.and_(
                    worker_jobs.c.state == _DOING, worker_jobs.c.token == bindparam("held_token")
                ),
            ),
        )
        # In this order: MySQL reads the new value of a column that was set before.
        .ordered_values(
            (
                worker_jobs.c.lost_worker,
                sa.func.coalesce(
                    worker_jobs.c.lost_worker,
                    sa.case((worker_jobs.c.worker != bindparam("by_worker"), worker_jobs.c.worker)),
                ),
            ),
            (worker_jobs.c.state, _DOING),
            (worker_jobs.c.worker, bindparam("by_worker")),
            (worker_jobs.c.token, bindparam("held_token")),
            (worker_jobs.c.taken_at, time_in()),
            (worker_jobs.c.leased_until, _LEASE),
        )
    )
)
#: What a worker reads of a job that it has taken.
TAKEN = Deferred(
    lambda: sa.select(
        worker_jobs.c.task, worker_jobs.c.payload, worker_jobs.c.stop, worker_jobs.c.lost_worker
    ).where(_held())
)
#: Renew the lease of a job.
RENEW = Deferred(lambda: sa.update(worker_jobs).where(_held()).values(leased_until=_LEASE))
#: The jobs that a worker took last, also if they were lost.
HELD = Deferred(
    lambda: sa.select(
        worker_jobs.c.plan,
        worker_jobs.c.action,
        worker_jobs.c.attempt,
        worker_jobs.c.token,
        worker_jobs.c.stop,
    ).where(worker_jobs.c.worker == bindparam("by_worker"))
)
#: End a job.
END_JOB = Deferred(
    lambda: (
        sa.update(worker_jobs)
        .where(
            _this(),
            # An end that was written, but whose answer was lost, may be repeated.
            worker_jobs.c.state.in_(words([WorkerJobState.DOING, WorkerJobState.ENDED])),
            worker_jobs.c.token == bindparam("held_token"),
        )
        .values(state=word(WorkerJobState.ENDED), result=bindparam("json"), leased_until=sa.null())
    )
)
#: Record that a worker was heard of.
HEARD = Deferred(
    lambda: (
        sa.update(workers)
        .where(workers.c.name == bindparam("by_worker"))
        .values(running=bindparam("busy"), heard_at=time_in())
    )
)
#: Register a worker.
REGISTER = Deferred(
    lambda: (
        sa.insert(workers)
        .inline()
        .values(
            {
                **{
                    column: bindparam(column.key)
                    for column in workers.c
                    if column.key not in ("started_at", "heard_at")
                },
                workers.c.started_at: sa.func.coalesce(
                    bindparam("started", type_=Moment), time_in()
                ),
                workers.c.heard_at: time_in(),
            }
        )
    )
)
#: Tell a worker to drain that was not told before.
DRAIN = Deferred(
    lambda: (
        sa.update(workers)
        .where(
            workers.c.name == bindparam("by_worker"),
            workers.c.draining == sa.literal_column("0"),
        )
        .values(draining=sa.literal_column("1"))
    )
)
#: Whether a worker is to drain, and since when it runs.
DRAINING = Deferred(
    lambda: sa.select(workers.c.draining, workers.c.started_at).where(
        workers.c.name == bindparam("by_worker")
    )
)
FORGET_WORKER = Deferred(lambda: sa.delete(workers).where(workers.c.name == bindparam("by_worker")))
WORKERS = Deferred(lambda: sa.select(workers, time_in().label("now")).order_by(workers.c.name))
#: The queues of the workers that were heard of lately and do not drain, as JSON lists.
SERVED = Deferred(
    lambda: (
        sa.select(
            workers.c.queues,
            sa.func.count().label("number"),
            sa.func.sum(workers.c.places).label("places"),
        )
        .where(
            workers.c.draining == sa.literal_column("0"),
            workers.c.heard_at > time_in(-bindparam("silent_s", type_=sa.Double)),
        )
        .group_by(workers.c.queues)
    )
)
