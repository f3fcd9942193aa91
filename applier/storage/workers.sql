-- SPDX-License-Identifier: Apache-2.0
-- The statements on jobs of workers, on workers and services, and those that monitoring uses.
-- Each that changes a job states in its WHERE clause which state, token or lease the job must have; see
-- applier.store.worker_jobs.

-- _THIS_JOB
plan = :plan_uuid AND action = :action_uuid AND attempt = :number

-- _HELD_JOB
{_THIS_JOB} AND state = 'doing' AND token = :held_token

-- _OUT_OF_LEASE
state = 'doing' AND leased_until < now_plus(0)

-- _LOST_ON_MACHINE
-- The last worker of a job ran on a given machine: the name of a worker begins with that of its
-- machine.
substr(worker, 1, :name_length) = :on_machine

-- OFFER_JOB
-- Insert a job, which a worker of its queue may take.
INSERT INTO actionplan_worker_job (
    plan, action, attempt, queue, action_type, task, state, payload, offered_at, sent_at)
VALUES (
    :plan_uuid, :action_uuid, :number, :to_queue, :of_type, 'act', 'todo', :json,
    now_plus(0), now_plus(0))

-- KEEP_WORKER
-- Copy the worker that took a job last into the row of the ended attempt.
UPDATE actionplan_attempt SET worker = (SELECT worker FROM actionplan_worker_job WHERE {_THIS_JOB})
WHERE plan = :plan_uuid AND action = :action_uuid AND number = :number

-- REMOVE_JOB
-- Remove a job whose end is on record.
DELETE FROM actionplan_worker_job WHERE {_THIS_JOB}

-- JOBS_OF_PLAN
-- The jobs of a plan, without their payloads, and without times that workers write.
SELECT plan, action, attempt, queue, action_type, state, task, offered_at, worker, stop, result,
    now_plus(0) AS now
FROM actionplan_worker_job
WHERE plan = :plan_uuid

-- JOBS_OVER
-- Those of them that no worker carries out or waits to take: ended, lost or cancelled.
{JOBS_OF_PLAN} AND state NOT IN ('todo', 'doing')

-- UNSENT_JOBS
-- Those of them that wait for a worker, and were sent at least ``older_s`` seconds ago.
{JOBS_OF_PLAN} AND state = 'todo' AND sent_at <= now_plus(-:older_s)

-- JOB_SENT
-- Record that a message about a job is sent now.
UPDATE actionplan_worker_job SET sent_at = now_plus(0) WHERE {_THIS_JOB}

-- STOP_JOB
-- Record why a job has to stop; the first reason is kept. One that waits for a worker is cancelled.
UPDATE actionplan_worker_job
SET stop = coalesce(stop, :why),
    state = CASE WHEN state = 'todo' THEN 'cancelled' ELSE state END
WHERE {_THIS_JOB} AND (state = 'todo' OR state IN ('doing', 'lost') AND stop IS NULL)

-- JOBS_OUT_OF_LEASE
-- The jobs of a plan whose leases ran out.
SELECT plan, action, attempt FROM actionplan_worker_job
WHERE plan = :plan_uuid AND {_OUT_OF_LEASE}

-- FENCE_JOB
-- Make a job LOST whose lease ran out: no result is accepted from its worker any more.
UPDATE actionplan_worker_job SET state = 'lost', token = NULL, leased_until = NULL
WHERE {_THIS_JOB} AND {_OUT_OF_LEASE}

-- VERIFY_JOB
-- Offer a LOST job again with the task ``to_do``, FIND or VERIFY; also change FIND to VERIFY.
UPDATE actionplan_worker_job SET state = 'todo', task = :to_do, sent_at = now_plus(0)
WHERE {_THIS_JOB}
    AND (state = 'lost' OR state = 'todo' AND task = 'find' AND :to_do != 'find')

-- JOBS_TO_FIND
-- The jobs with the task FIND for a machine.
SELECT plan, action, attempt, queue, worker FROM actionplan_worker_job
WHERE state = 'todo' AND task = 'find' AND {_LOST_ON_MACHINE}

-- TAKE_JOB
-- Take a job. With the same token, it may be repeated, which also renews the lease. The order
-- matters: MySQL reads the new value of a column that was set before.
UPDATE actionplan_worker_job
SET lost_worker = coalesce(lost_worker, CASE WHEN worker != :by_worker THEN worker END),
    state = 'doing', worker = :by_worker, token = :held_token, taken_at = now_plus(0),
    leased_until = now_plus(:lease_s)
WHERE {_THIS_JOB}
    AND (state = 'todo' AND (task != 'find' OR {_LOST_ON_MACHINE})
        OR state = 'doing' AND token = :held_token)

-- TAKEN_JOB
-- The columns of a job that the worker needs which has taken it.
SELECT task, payload, stop, lost_worker FROM actionplan_worker_job WHERE {_HELD_JOB}

-- RENEW_JOB
-- Renew the lease of a job.
UPDATE actionplan_worker_job SET leased_until = now_plus(:lease_s) WHERE {_HELD_JOB}

-- HELD_JOBS
-- The jobs that a worker was the last to take, also if they were lost or have ended.
SELECT plan, action, attempt, token, stop FROM actionplan_worker_job
WHERE worker = :by_worker

-- END_JOB
-- Write the result of a job, which ends it. An end that was written, but whose answer was lost,
-- may be repeated.
UPDATE actionplan_worker_job SET state = 'ended', result = :json, leased_until = NULL
WHERE {_THIS_JOB} AND state IN ('doing', 'ended') AND token = :held_token

-- WORKER_HEARD
-- Record a report of a worker, with its time and the number of running jobs.
UPDATE actionplan_worker SET running = :busy, heard_at = now_plus(0)
WHERE name = :by_worker

-- REGISTER_WORKER
-- Register a worker.
INSERT INTO actionplan_worker (
    name, host, pid, "user", version, cloud, queues, types, places, running, draining,
    started_at, heard_at)
VALUES (
    :name, :host, :pid, :user, :version, :cloud, :queues, :types, :places, :running, :draining,
    coalesce(:started, now_plus(0)), now_plus(0))

-- DRAIN_WORKER
-- Mark a worker as draining. No row matches if it is marked already.
UPDATE actionplan_worker SET draining = 1 WHERE name = :by_worker AND draining = 0

-- WORKER_DRAINING
-- Whether a worker is marked as draining, and the time of its start.
SELECT draining, started_at FROM actionplan_worker WHERE name = :by_worker

-- FORGET_WORKER
DELETE FROM actionplan_worker WHERE name = :by_worker

-- WORKERS
SELECT w.*, now_plus(0) AS now FROM actionplan_worker AS w ORDER BY name

-- SERVED_QUEUES
-- How many workers have the same list of queues (as JSON), and the sum of their places. Only
-- workers count that reported in the last ``silent_s`` seconds and are not draining.
SELECT queues, count(*) AS number, sum(places) AS places
FROM actionplan_worker
WHERE draining = 0 AND heard_at > now_plus(-:silent_s)
GROUP BY queues

-- FORGET_SERVICE
-- Delete a service, before its next report is inserted or when it has ended.
DELETE FROM actionplan_service WHERE uuid = :service_uuid

-- SERVICES
SELECT * FROM actionplan_service ORDER BY heartbeat_at DESC, uuid

-- PING
-- Reads at most one row: it only finds out whether the table of plans can be read.
SELECT number FROM actionplan_plan LIMIT 1

-- PLANS_BY_STATE
SELECT state, count(*) AS number FROM actionplan_plan GROUP BY state

-- IN_DOUBT
-- Nobody knows whether an action of the plan was done.
doubtful = 1 AND state IN ('FAILED', 'CANCELLED', 'PAUSED', 'ONGOING', 'CANCELLING', 'PENDING') AND EXISTS (
    SELECT s.uuid FROM actionplan_action_state AS s
    WHERE s.plan = actionplan_plan.uuid AND s.state = 'UNKNOWN')

-- PLANS_IN_DOUBT
SELECT count(*) AS number FROM actionplan_plan WHERE {IN_DOUBT}

-- ACTIONS_BY_TYPE
-- The number of actions of the plans under way, by type and state; without an order, so that
-- nothing is sorted.
SELECT action_type, state, count(*) AS number
FROM (
    SELECT s.action_type, s.state
    FROM actionplan_plan AS p JOIN actionplan_action_state AS s ON s.plan = p.uuid
    WHERE p.state IN {under_way}
    LIMIT :most) AS counted
GROUP BY action_type, state

-- OLDEST_PENDING
-- The plan that has waited longest for an applier.
SELECT coalesce(updated_at, created_at) AS at {WAITING} LIMIT 1

-- CLAIMANTS
SELECT uuid, coalesce(claimant_host, '') AS host, heartbeat_at AS at FROM actionplan_plan
WHERE state IN {running} AND claim IS NOT NULL
ORDER BY number DESC
LIMIT :most

-- SERVICE_BEATS
SELECT uuid, host, heartbeat_at AS at, plans FROM actionplan_service
ORDER BY heartbeat_at DESC
LIMIT :most

-- WORKER_FIGURES
-- The workers on other machines, latest report first.
SELECT name, host, running, places, draining, heard_at, now_plus(0) AS now
FROM actionplan_worker
ORDER BY heard_at DESC
LIMIT :most

-- JOBS_BY_STATE
-- The number of their jobs by state. A job has a row while its action is ONGOING.
SELECT state, count(*) AS number
FROM (SELECT state FROM actionplan_worker_job LIMIT :most) AS counted
GROUP BY state

-- OLDEST_EVENT
-- The first event from a number on.
SELECT at FROM actionplan_event WHERE number >= :first ORDER BY number LIMIT 1

-- DEAD_BY_RECEIVER
SELECT subscription, count(*) AS number FROM actionplan_dead_event GROUP BY subscription

-- IMPORTED
SELECT seconds, size, node FROM actionplan_duration
WHERE action_type = :of_type
ORDER BY number
LIMIT :most

-- IMPORTED_TYPES
SELECT DISTINCT action_type FROM actionplan_duration ORDER BY action_type

-- FORGET_DURATIONS
DELETE FROM actionplan_duration WHERE action_type = :of_type
