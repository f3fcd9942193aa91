# SPDX-License-Identifier: Apache-2.0
"""The statements on jobs of workers, and on workers.

Each statement that changes a job states in its WHERE clause which state, token or lease the job
must have; see :mod:`applier.store.worker_jobs`.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import bindparam

from applier.storage.columns import Moment, time_in
from applier.storage.compiled import Deferred, word, words
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
    """Return the SQL condition that the last worker of a job ran on a given machine.

    The name of a worker begins with the name of its machine.
    """
    length = bindparam("name_length", type_=sa.Integer)
    return sa.func.substr(worker_jobs.c.worker, 1, length) == bindparam("on_machine")


def _out_of_lease() -> sa.ColumnElement[bool]:
    return sa.and_(worker_jobs.c.state == _DOING, worker_jobs.c.leased_until < time_in())


#: Insert a job, which a worker of its queue may take.
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
#: Copy the worker that took a job last into the row of the ended attempt.
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
#: Those of them that no worker carries out or waits to take: ended, lost or cancelled.
OVER_OF_PLAN = Deferred(lambda: OF_PLAN().where(worker_jobs.c.state.not_in([_TODO, _DOING])))
#: Those of them that wait for a worker, and were sent at least ``older_s`` seconds ago.
OLD = Deferred(lambda: OF_PLAN().where(_old()))
#: Record that a message about a job is sent now.
SENT = Deferred(lambda: sa.update(worker_jobs).where(_this()).values(sent_at=time_in()))
#: Record why a job has to stop; the first reason is kept. One that waits for a worker is cancelled.
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
#: Make a job LOST whose lease ran out: no result is accepted from its worker any more.
FENCE = Deferred(
    lambda: (
        sa.update(worker_jobs)
        .where(_this(), _out_of_lease())
        .values(state=word(WorkerJobState.LOST), token=sa.null(), leased_until=sa.null())
    )
)
#: Offer a LOST job again with the task ``to_do``, FIND or VERIFY; also change FIND to VERIFY.
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
#: The jobs with the task FIND for a machine.
TO_FIND = Deferred(
    lambda: sa.select(
        worker_jobs.c.plan,
        worker_jobs.c.action,
        worker_jobs.c.attempt,
        worker_jobs.c.queue,
        worker_jobs.c.worker,
    ).where(worker_jobs.c.state == _TODO, worker_jobs.c.task == _FIND, _lost_on_machine())
)
#: Take a job. With the same token, it may be repeated, which also renews the lease.
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
#: The columns of a job that the worker needs which has taken it.
TAKEN = Deferred(
    lambda: sa.select(
        worker_jobs.c.task, worker_jobs.c.payload, worker_jobs.c.stop, worker_jobs.c.lost_worker
    ).where(_held())
)
#: Renew the lease of a job.
RENEW = Deferred(lambda: sa.update(worker_jobs).where(_held()).values(leased_until=_LEASE))
#: The jobs that a worker was the last to take, also if they were lost or have ended.
HELD = Deferred(
    lambda: sa.select(
        worker_jobs.c.plan,
        worker_jobs.c.action,
        worker_jobs.c.attempt,
        worker_jobs.c.token,
        worker_jobs.c.stop,
    ).where(worker_jobs.c.worker == bindparam("by_worker"))
)
#: Write the result of a job, which ends it.
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
#: Record a report of a worker, with its time and the number of running jobs.
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
#: Mark a worker as draining. No row matches if it is marked already.
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
#: Whether a worker is marked as draining, and the time of its start.
DRAINING = Deferred(
    lambda: sa.select(workers.c.draining, workers.c.started_at).where(
        workers.c.name == bindparam("by_worker")
    )
)
FORGET_WORKER = Deferred(lambda: sa.delete(workers).where(workers.c.name == bindparam("by_worker")))
WORKERS = Deferred(lambda: sa.select(workers, time_in().label("now")).order_by(workers.c.name))
#: How many workers have the same list of queues (as JSON), and the sum of their places. Only
#: workers count that reported in the last ``silent_s`` seconds and are not draining.
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
