-- SPDX-License-Identifier: Apache-2.0
-- The statements on plans: their actions, attempts and requests. applier/storage/statements.py says how they are read.

-- PLAN
-- The row of one plan.
SELECT * FROM actionplan_plan WHERE uuid = :plan_uuid

-- NUMBERS
-- The uuids of all plans. SQLite reads them from an index, so that no page of rows is needed.
SELECT uuid, number FROM actionplan_plan ORDER BY uuid

-- MADE
-- When each plan was made. It is read from an index, too.
SELECT number, created_at FROM actionplan_plan ORDER BY created_at, number

-- ACTIONS
-- The actions of a plan as planned, in plan order.
SELECT * FROM actionplan_action WHERE plan = :plan_uuid ORDER BY position

-- _MEMBERS
-- The same with the columns of their states, which are NULL for an action that has none.
SELECT a.*, s.action_type, s.state, s.outcome, s.state_reason, s.status_message,
    s.started_at, s.ended_at, s.attempts
FROM actionplan_action AS a
LEFT JOIN actionplan_action_state AS s ON s.plan = a.plan AND s.uuid = a.uuid
WHERE a.plan = :plan_uuid

-- MEMBERS
{_MEMBERS} ORDER BY a.position

-- MEMBER
-- The same of one action, of those that a reference matches, and of those that run.
{_MEMBERS} AND a.uuid = :action_uuid

-- MATCHES
{_MEMBERS}
    AND (a.uuid = :reference OR a.uuid LIKE :beginning ESCAPE '/' OR a.name = :reference)
ORDER BY a.position

-- RUNNING
{_MEMBERS} AND s.state = 'ONGOING' ORDER BY a.position

-- REQUESTED
-- Those that requests to the plan name, and how many are in each state, by their wave.
{_MEMBERS} AND a.uuid IN (
    SELECT action FROM actionplan_request WHERE plan = :plan_uuid)
ORDER BY a.position

-- WAVE_STATES
SELECT wave, state, count(*) AS number FROM actionplan_action_state
WHERE plan = :plan_uuid AND wave IS NOT NULL GROUP BY wave, state ORDER BY wave, state

-- STATES
-- The state rows of the actions of a plan.
SELECT * FROM actionplan_action_state WHERE plan = :plan_uuid

-- ACTION
-- State, start and number of attempts of one action.
SELECT state, started_at, attempts FROM actionplan_action_state
WHERE plan = :plan_uuid AND uuid = :action_uuid

-- ATTEMPTS
-- The ended attempts of an action, oldest first.
SELECT action, number, started_at, ended_at, state, outcome, message, output, worker,
    left_in
FROM actionplan_attempt
WHERE plan = :plan_uuid AND action = :action_uuid
ORDER BY number

-- ALL_ATTEMPTS
-- The ended attempts of all actions of a plan, with the end of each output.
SELECT action, number, started_at, ended_at, state, outcome, message, worker, left_in,
    CASE WHEN length(output) > :most THEN substr(output, length(output) - :most + 1)
        ELSE output END AS output
FROM actionplan_attempt
WHERE plan = :plan_uuid
ORDER BY action, number

-- DURATIONS
-- The latest attempts whose durations are used for a type, with tokens and parameters of their
-- actions.
SELECT t.started_at, t.ended_at, a.tokens, a.input_parameters
FROM actionplan_attempt AS t
LEFT JOIN actionplan_action AS a ON a.plan = t.plan AND a.uuid = t.action
WHERE t.measures = :action_type AND t.ended_at < :before
ORDER BY t.id DESC
LIMIT :most

-- REQUESTS
-- The requests of a plan with numbers greater than ``after``, oldest first.
SELECT * FROM actionplan_request
WHERE plan = :plan_uuid AND number > :after
ORDER BY number

-- HISTORY
-- The entries of the history with numbers greater than ``after``, latest first; at most ``most``.
SELECT * FROM actionplan_history
WHERE number > :after AND number < :before
ORDER BY number DESC
LIMIT :most

-- HISTORY_OF_PLAN
-- The same of one plan; and of plans, people and times. ``of`` and ``by`` are LIKE patterns.
SELECT * FROM actionplan_history
WHERE number > :after AND number < :before AND plan = :plan_uuid
ORDER BY number DESC
LIMIT :most

-- CHOSEN_HISTORY
SELECT * FROM actionplan_history
WHERE number > :after AND number < :before AND at >= :since
    AND who LIKE :by ESCAPE '/' AND plan LIKE :of ESCAPE '/'
ORDER BY number DESC
LIMIT :most

-- LATER
-- Whether a plan has entries of the history with numbers greater than ``after``.
SELECT number FROM actionplan_history WHERE number > :after AND plan = :plan_uuid LIMIT 1

-- NAMES
-- The names of the plans that have one, those saved last first.
SELECT uuid, name FROM actionplan_plan
WHERE name IS NOT NULL ORDER BY number DESC LIMIT :most

-- SUBSCRIBED
-- One subscription that has not ended at the time ``now``, if there is any.
SELECT name FROM actionplan_subscription WHERE until IS NULL OR until > :now LIMIT 1

-- HOLD_CLAIM
-- Check the claim of a plan and store the name of the write, which counts as a heartbeat. No row
-- matches if the claim has ended, if the write was already made, or if ``publishes`` (whether the
-- writer writes events; None for a write without any) is not as in the row. The row stays locked
-- until the transaction ends.
UPDATE actionplan_plan
SET updated_at = :now, heartbeat_at = :now, last_write = :write
WHERE uuid = :plan_uuid AND claim = :held AND publishes = coalesce(:publishes, publishes)
    AND coalesce(last_write, '') != :write

-- COUNT_REQUEST
-- Increment the number of requests of a plan that somebody runs.
UPDATE actionplan_plan SET requests = requests + 1
WHERE uuid = :plan_uuid AND claim IS NOT NULL

-- CANCEL
-- Cancel the PENDING actions of a plan.
UPDATE actionplan_action_state
SET state = 'CANCELLED', state_reason = NULL, status_message = :new_message, ended_at = :now
WHERE plan = :plan_uuid AND state = 'PENDING'

-- REWORD_SKIP
-- Replace the message of a SKIPPED action.
UPDATE actionplan_action_state SET status_message = :new_message
WHERE plan = :plan_uuid AND uuid = :action_uuid AND state = 'SKIPPED'

-- HOLD
-- Lock the row of a plan until the end of the transaction, and store the name of the write. No row matches if the write
-- was already made.
UPDATE actionplan_plan SET last_write = :write
WHERE uuid = :plan_uuid AND coalesce(last_write, '') != :write

-- TOUCH
-- Store the time of a change of a plan.
UPDATE actionplan_plan SET updated_at = :now WHERE uuid = :plan_uuid

-- MOVE
-- Change the state of a plan whose row is locked.
UPDATE actionplan_plan
SET state = :new_state, deleted_from = :deleted_from, claim = :new_claim,
    status_message = :new_message, updated_at = :now, start_at = :start_at
WHERE uuid = :plan_uuid

-- QUEUE_RESERVED
-- Put a plan at the end of the queue of plans that reserve resources; NULL removes it.
UPDATE actionplan_plan SET reserved = :new_number WHERE uuid = :plan_uuid

-- GIVE_BACK
-- Release the resources that a plan has reserved.
DELETE FROM actionplan_reservation WHERE plan = :plan_uuid

-- REMOVE_JOBS
-- Remove all jobs at workers of a plan that has ended.
DELETE FROM actionplan_worker_job WHERE plan = :plan_uuid

-- BEAT
-- Store a heartbeat of the claimant.
UPDATE actionplan_plan SET heartbeat_at = :now WHERE uuid = :plan_uuid AND claim = :held

-- LAST
-- The uuid of the plan that was saved before ``earlier`` others, except removed ones.
SELECT uuid FROM actionplan_plan WHERE state != 'DELETED'
ORDER BY number DESC LIMIT 1 OFFSET :earlier

-- HELD
-- The plans that reserved a plan's resources before it did, in the order of their reservations.
SELECT r.resource, theirs.uuid AS plan, theirs.name, theirs.claimant_user AS "user"
FROM actionplan_reservation AS own
JOIN actionplan_plan AS mine ON mine.uuid = own.plan
JOIN actionplan_reservation AS r ON r.resource = own.resource
JOIN actionplan_plan AS theirs ON theirs.uuid = r.plan
WHERE own.plan = :plan_uuid AND theirs.reserved < mine.reserved
ORDER BY theirs.reserved

-- FIND
-- All plans that a reference may match, and perhaps more: SQLite's LIKE ignores
-- case, and MySQL's = ignores trailing spaces.
SELECT uuid, name FROM actionplan_plan
WHERE (uuid LIKE :beginning ESCAPE '/' OR name = :reference) AND state != 'DELETED'
    OR uuid = :reference

-- TAKE_TURN
-- Increment the last number in the queues. Other transactions wait here until this one ends.
UPDATE actionplan_turn SET number = number + 1

-- TURN
SELECT number FROM actionplan_turn

-- _DUE
state = 'PENDING' AND (start_at IS NULL OR start_at <= now_plus(0))

-- WAITING
-- The plans that wait for an applier and may start now, longest wait first.
FROM actionplan_plan WHERE {_DUE} ORDER BY coalesce(queued, 0), number

-- PENDING_PLANS
SELECT uuid {WAITING}

-- QUEUE
-- Put a plan at the end of the queue of plans that wait for an applier.
UPDATE actionplan_plan SET queued = :new_number WHERE uuid = :plan_uuid

-- CLAIM
-- Claim a plan that waits for an applier, and may start now.
UPDATE actionplan_plan
SET state = 'ONGOING', claim = :new_claim, claimant_host = :host, claimant_pid = :pid,
    claimant_user = :user, claimant_jobs = :jobs, claimant_options = :options,
    updated_at = :now, heartbeat_at = :now,
    heartbeat_interval_s = :interval_s, requests_before = requests,
    publishes = CASE WHEN EXISTS (
        SELECT name FROM actionplan_subscription WHERE until IS NULL OR until > :now
    ) THEN 1 ELSE 0 END,
    claimed_at = :now, start_at = NULL, last_write = :new_claim
WHERE uuid = :plan_uuid AND {_DUE}

-- START
-- Start actions that are PENDING.
UPDATE actionplan_action_state AS s
SET state = 'ONGOING', outcome = NULL, state_reason = NULL, status_message = :new_message,
    started_at = :now, ended_at = NULL, attempts = attempts + 1
WHERE THESE AND state = 'PENDING'

-- REOPEN
-- Continue the last attempt of actions that are UNKNOWN, whose commands were found.
UPDATE actionplan_action_state AS s
SET state = 'ONGOING', outcome = NULL, state_reason = NULL, status_message = :new_message,
    ended_at = NULL
WHERE THESE AND state = 'UNKNOWN'

-- DROP_ATTEMPT
-- Delete the record of these attempts, which have not ended after all.
DELETE FROM actionplan_attempt
WHERE plan = :plan_uuid AND EXISTS (
    SELECT s.uuid FROM actionplan_action_state AS s
    WHERE THESE AND s.plan = actionplan_attempt.plan
        AND s.uuid = actionplan_attempt.action AND s.attempts = actionplan_attempt.number)

-- END
-- End actions that are in the old state of their reports.
UPDATE actionplan_action_state AS s
SET state = :new_state, outcome = :new_outcome, state_reason = :new_reason,
    status_message = :new_message, ended_at = :now
WHERE THESE AND state = :old_state

-- DOUBT
-- An action of a plan becomes UNKNOWN.
UPDATE actionplan_plan SET doubtful = 1 WHERE uuid = :plan_uuid AND doubtful = 0

-- AGAIN
-- Make actions PENDING again.
UPDATE actionplan_action_state AS s
SET state = 'PENDING', outcome = NULL, state_reason = NULL, status_message = :new_message,
    started_at = NULL, ended_at = NULL
WHERE THESE

-- UNDONE
-- Write the new state of reverted actions of another plan, if their old state allows that.
UPDATE actionplan_action_state AS s
SET state = :new_state, state_reason = NULL, status_message = :new_message
WHERE THESE AND state IN {undoable}

-- KEEP_ATTEMPT
-- Insert the attempts that just ended, copied from the rows of their actions. Durations are used of
-- those that SUCCEEDED, changed or created something, and started under the current claim. One that
-- was given up may still be at work: in a named process, by default that of the claimant. A
-- pipeline sends this before the result of END is known, hence the last condition.
INSERT INTO actionplan_attempt (
    plan, action, number, started_at, ended_at, state, outcome, measures, message, output,
    left_in)
SELECT s.plan, s.uuid, s.attempts, coalesce(s.started_at, s.ended_at), s.ended_at, s.state,
    s.outcome,
    CASE WHEN s.state = 'SUCCEEDED' AND s.outcome IN ('changed', 'created')
        AND s.started_at >= p.claimed_at THEN s.action_type END,
    s.status_message, :new_output,
    CASE WHEN :given_up = 1
        THEN coalesce(:new_left_in, p.claimant_host || ':' || p.claimant_pid) END
FROM actionplan_action_state AS s JOIN actionplan_plan AS p ON p.uuid = s.plan
WHERE THESE AND s.ended_at IS NOT NULL

-- _ENDED
-- An unclaimed plan ended before the time ``before``. A plan without times counts as ended before
-- all others.
state IN {ended} AND claim IS NULL
    AND :before > coalesce(updated_at, created_at, '1000-01-01 00:00:00.000000')

-- ENDED_PLANS
SELECT number, uuid,
    (SELECT count(*) FROM actionplan_action_state AS s WHERE s.plan = p.uuid) AS actions
FROM actionplan_plan AS p
WHERE {_ENDED} AND number > :after
ORDER BY number
LIMIT :most

-- HOLD_ENDED
-- Lock the row of a plan that ended before a time. Of two transactions that purge it at once, one
-- finds the row.
UPDATE actionplan_plan SET last_write = :write WHERE uuid = :plan_uuid AND {_ENDED}

-- OLD_ANSWERS
-- The answers to requests that changed no plan, from before a time.
SELECT at FROM actionplan_answer WHERE plan = :of_none AND at < :before LIMIT 1

-- FORGET_ANSWERS
DELETE FROM actionplan_answer WHERE plan = :of_none AND at < :before

-- LEFT_PLAN
-- The row of a plan that was not removed; uuid and state of any plan.
SELECT * FROM actionplan_plan WHERE uuid = :plan_uuid AND state != 'DELETED'

-- PLAN_KEYS
SELECT uuid, state FROM actionplan_plan WHERE uuid = :plan_uuid

-- SHORT_ATTEMPTS
-- The attempts of a plan; of their texts, which may be long, only the first character.
SELECT id, plan, action, number, started_at, ended_at, state, outcome, measures, worker,
    left_in, substr(message, 1, 1) AS message, substr(output, 1, 1) AS output
FROM actionplan_attempt
WHERE plan = :plan_uuid
