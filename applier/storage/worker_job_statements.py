# SPDX-License-Identifier: Apache-2.0
"""The statements on jobs of workers, and on workers.

Each statement that changes a job states in its WHERE clause which state, token or lease the job
must have; see :mod:`applier.store.worker_jobs`.
"""

from __future__ import annotations

_THIS = "plan = :plan_uuid AND action = :action_uuid AND attempt = :number"
_HELD = f"{_THIS} AND state = 'doing' AND token = :held_token"
_OUT_OF_LEASE = "state = 'doing' AND leased_until < now_plus(0)"
#: The last worker of a job ran on a given machine: the name of a worker begins with that of its
#: machine.
_LOST_ON_MACHINE = "substr(worker, 1, :name_length) = :on_machine"

#: Insert a job, which a worker of its queue may take.
OFFER = """
    INSERT INTO actionplan_worker_job (
        plan, action, attempt, queue, action_type, task, state, payload, offered_at, sent_at)
    VALUES (
        :plan_uuid, :action_uuid, :number, :to_queue, :of_type, 'act', 'todo', :json,
        now_plus(0), now_plus(0))"""
#: Copy the worker that took a job last into the row of the ended attempt.
KEEP_WORKER = f"""
    UPDATE actionplan_attempt SET worker = (SELECT worker FROM actionplan_worker_job WHERE {_THIS})
    WHERE plan = :plan_uuid AND action = :action_uuid AND number = :number"""
#: Remove a job whose end is on record.
REMOVE = f"DELETE FROM actionplan_worker_job WHERE {_THIS}"
#: The jobs of a plan, without their payloads, and without times that workers write.
OF_PLAN = """
    SELECT plan, action, attempt, queue, action_type, state, task, offered_at, worker, stop, result,
        now_plus(0) AS now
    FROM actionplan_worker_job
    WHERE plan = :plan_uuid"""
#: Those of them that no worker carries out or waits to take: ended, lost or cancelled.
OVER_OF_PLAN = f"{OF_PLAN} AND state NOT IN ('todo', 'doing')"
#: Those of them that wait for a worker, and were sent at least ``older_s`` seconds ago.
OLD = f"{OF_PLAN} AND state = 'todo' AND sent_at <= now_plus(-:older_s)"
#: Record that a message about a job is sent now.
SENT = f"UPDATE actionplan_worker_job SET sent_at = now_plus(0) WHERE {_THIS}"
#: Record why a job has to stop; the first reason is kept. One that waits for a worker is cancelled.
STOP = f"""
    UPDATE actionplan_worker_job
    SET stop = coalesce(stop, :why),
        state = CASE WHEN state = 'todo' THEN 'cancelled' ELSE state END
    WHERE {_THIS} AND (state = 'todo' OR state IN ('doing', 'lost') AND stop IS NULL)"""
#: The jobs of a plan whose leases ran out.
OUT_OF_LEASE = f"""
    SELECT plan, action, attempt FROM actionplan_worker_job
    WHERE plan = :plan_uuid AND {_OUT_OF_LEASE}"""
#: Make a job LOST whose lease ran out: no result is accepted from its worker any more.
FENCE = f"""
    UPDATE actionplan_worker_job SET state = 'lost', token = NULL, leased_until = NULL
    WHERE {_THIS} AND {_OUT_OF_LEASE}"""
#: Offer a LOST job again with the task ``to_do``, FIND or VERIFY; also change FIND to VERIFY.
VERIFY = f"""
    UPDATE actionplan_worker_job SET state = 'todo', task = :to_do, sent_at = now_plus(0)
    WHERE {_THIS}
        AND (state = 'lost' OR state = 'todo' AND task = 'find' AND :to_do != 'find')"""
#: The jobs with the task FIND for a machine.
TO_FIND = f"""
    SELECT plan, action, attempt, queue, worker FROM actionplan_worker_job
    WHERE state = 'todo' AND task = 'find' AND {_LOST_ON_MACHINE}"""
#: Take a job. With the same token, it may be repeated, which also renews the lease. The order
#: matters: MySQL reads the new value of a column that was set before.
TAKE = f"""
    UPDATE actionplan_worker_job
    SET lost_worker = coalesce(lost_worker, CASE WHEN worker != :by_worker THEN worker END),
        state = 'doing', worker = :by_worker, token = :held_token, taken_at = now_plus(0),
        leased_until = now_plus(:lease_s)
    WHERE {_THIS}
        AND (state = 'todo' AND (task != 'find' OR {_LOST_ON_MACHINE})
            OR state = 'doing' AND token = :held_token)"""
#: The columns of a job that the worker needs which has taken it.
TAKEN = f"SELECT task, payload, stop, lost_worker FROM actionplan_worker_job WHERE {_HELD}"
#: Renew the lease of a job.
RENEW = f"UPDATE actionplan_worker_job SET leased_until = now_plus(:lease_s) WHERE {_HELD}"
#: The jobs that a worker was the last to take, also if they were lost or have ended.
HELD = """
    SELECT plan, action, attempt, token, stop FROM actionplan_worker_job
    WHERE worker = :by_worker"""
#: Write the result of a job, which ends it. An end that was written, but whose answer was lost,
#: may be repeated.
END_JOB = f"""
    UPDATE actionplan_worker_job SET state = 'ended', result = :json, leased_until = NULL
    WHERE {_THIS} AND state IN ('doing', 'ended') AND token = :held_token"""
#: Record a report of a worker, with its time and the number of running jobs.
HEARD = """
    UPDATE actionplan_worker SET running = :busy, heard_at = now_plus(0)
    WHERE name = :by_worker"""
#: Register a worker.
REGISTER = """
    INSERT INTO actionplan_worker (
        name, host, pid, "user", version, cloud, queues, types, places, running, draining,
        started_at, heard_at)
    VALUES (
        :name, :host, :pid, :user, :version, :cloud, :queues, :types, :places, :running, :draining,
        coalesce(:started, now_plus(0)), now_plus(0))"""
#: Mark a worker as draining. No row matches if it is marked already.
DRAIN = "UPDATE actionplan_worker SET draining = 1 WHERE name = :by_worker AND draining = 0"
#: Whether a worker is marked as draining, and the time of its start.
DRAINING = "SELECT draining, started_at FROM actionplan_worker WHERE name = :by_worker"
FORGET_WORKER = "DELETE FROM actionplan_worker WHERE name = :by_worker"
WORKERS = "SELECT w.*, now_plus(0) AS now FROM actionplan_worker AS w ORDER BY name"
#: How many workers have the same list of queues (as JSON), and the sum of their places. Only
#: workers count that reported in the last ``silent_s`` seconds and are not draining.
SERVED = """
    SELECT queues, count(*) AS number, sum(places) AS places
    FROM actionplan_worker
    WHERE draining = 0 AND heard_at > now_plus(-:silent_s)
    GROUP BY queues"""
