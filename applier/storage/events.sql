-- SPDX-License-Identifier: Apache-2.0
-- The statements on events and subscriptions, on the history, and on approvals.

-- EVENT_NUMBERS
-- The numbers of the last event, and of the last one that was deleted.
SELECT events, events_deleted FROM actionplan_turn

-- _WITH_ACTIONS
-- Events with name and type of their actions, except those of joins.
SELECT e.*, a.name, s.action_type
FROM actionplan_event AS e
LEFT JOIN actionplan_action AS a ON a.plan = e.plan AND a.uuid = e.action
LEFT JOIN actionplan_action_state AS s ON s.plan = e.plan AND s.uuid = e.action
WHERE coalesce(s.action_type, '') != 'join'

-- EVENTS
-- The events with numbers above ``after``, oldest first, with name and type of their actions.
{_WITH_ACTIONS} AND e.number > :after ORDER BY e.number LIMIT :most

-- EVENTS_OF_PLAN
-- The same of one plan.
{_WITH_ACTIONS}
    AND e.number > :after AND e.plan = :plan_uuid
ORDER BY e.number
LIMIT :most

-- LATEST_EVENTS
-- The latest events, latest first.
{_WITH_ACTIONS} ORDER BY e.number DESC LIMIT :most

-- LATEST_EVENTS_OF_PLAN
-- The same of one plan.
{_WITH_ACTIONS} AND e.plan = :plan_uuid ORDER BY e.number DESC LIMIT :most

-- EVENTS_BETWEEN
-- How many events of a plan have numbers from ``first`` to ``last``.
SELECT count(*) AS number FROM actionplan_event
WHERE plan = :plan_uuid AND number BETWEEN :first AND :last

-- DELETE_EVENTS
-- Delete the events up to a number.
DELETE FROM actionplan_event WHERE number <= :last

-- SET_EVENT_DATA
-- Replace the data of an event.
UPDATE actionplan_event SET data = :new_data WHERE number = :of_number

-- DELETE_EVENTS_OF_JOINS
-- Delete the events of the joins of a plan, which no list and no delivery includes.
DELETE FROM actionplan_event
WHERE plan = :plan_uuid AND action IN (
    SELECT uuid FROM actionplan_action_state
    WHERE plan = :plan_uuid AND action_type = 'join')

-- FIRST_EVENT_SINCE
-- The first event with a time from ``before`` on. Clocks differ, so later events may be older.
SELECT number FROM actionplan_event WHERE at >= :before ORDER BY number LIMIT 1

-- EVENTS_DELETED
-- Record that all events up to a number were deleted.
UPDATE actionplan_turn SET events_deleted = :last

-- LOCK_EVENT_NUMBERS
-- Lock the counters until the end of the transaction.
UPDATE actionplan_turn SET events = events

-- SUBSCRIPTIONS
SELECT * FROM actionplan_subscription ORDER BY name

-- SUBSCRIPTION
SELECT * FROM actionplan_subscription WHERE name = :named

-- UNTIL
-- The end of a subscription. The columns of its delivery, which may be damaged, are not read.
SELECT until FROM actionplan_subscription WHERE name = :named

-- PROLONG
-- Prolong the subscription of readers; it is never shortened.
UPDATE actionplan_subscription SET until = :new_until
WHERE name = :named AND until < :new_until

-- UNSUBSCRIBE
DELETE FROM actionplan_subscription WHERE name = :named

-- HOLD_SUBSCRIPTION
-- Become the process that delivers, or write its heartbeat. No row matches if another process is
-- the holder, and its count of heartbeats is not ``seen``.
UPDATE actionplan_subscription SET holder = :new_holder, beats = beats + 1
WHERE name = :named AND (holder IS NULL OR holder = :new_holder OR beats = :seen)

-- RELEASE_SUBSCRIPTION
-- End the hold of a process, so that another can hold the subscription at once.
UPDATE actionplan_subscription SET holder = NULL WHERE name = :named AND holder = :held_by

-- DELIVERED
-- Write the progress of a delivery. No row matches if another process is the holder.
UPDATE actionplan_subscription
SET delivered = :delivered, held_back = :held_back, away = :away, beats = beats + 1
WHERE name = :name AND holder = :holder

-- PUBLISH
-- Set whether running plans write events.
UPDATE actionplan_plan SET publishes = :new_publishes
WHERE state IN {running} AND publishes != :new_publishes

-- DELETE_DEAD
-- Delete a dead event, which an earlier try of the same write may have inserted.
DELETE FROM actionplan_dead_event WHERE subscription = :named AND number = :dead_number

-- DELETE_ALL_DEAD
DELETE FROM actionplan_dead_event WHERE subscription = :named

-- DEAD_EVENTS
SELECT * FROM actionplan_dead_event
ORDER BY at DESC, subscription, number DESC
LIMIT :most

-- TAKE_EVENT_NUMBERS
-- Reserve ``count`` numbers for events. Other transactions wait here until this one ends.
UPDATE actionplan_turn SET events = events + :count

-- INSERT_EVENT
-- Insert an event; its number is the last one that was taken minus ``back``.
INSERT INTO actionplan_event (number, plan, action, type, at, old, data)
VALUES (
    (SELECT events - :back FROM actionplan_turn),
    :event_plan, :event_action, :event_type, :event_at, :event_old, :event_data)

-- INSERT_UNDONE_EVENT
-- Insert the event of an action of another plan that this one reverts, if its state allows that.
INSERT INTO actionplan_event (number, plan, action, type, at, old, data)
SELECT t.events - :back, s.plan, s.uuid, :event_type, :event_at, s.state, :event_data
FROM actionplan_turn AS t CROSS JOIN actionplan_action_state AS s
WHERE s.plan = :event_plan AND s.uuid = :event_action
    AND s.state IN {undoable}

-- ANSWER
SELECT * FROM actionplan_answer WHERE "key" = :of_key

-- KEEP_ANSWER
UPDATE actionplan_answer SET answer = :text
WHERE "key" = :of_key AND request_id = :by

-- APPROVALS
SELECT * FROM actionplan_approval WHERE plan = :plan_uuid ORDER BY number

-- IMPORTERS
SELECT who, number FROM actionplan_history WHERE plan = :plan_uuid AND verb = 'import'

-- FORGET_APPROVAL
-- Remove an earlier approval of the same content by the same person.
DELETE FROM actionplan_approval WHERE plan = :plan_uuid AND who = :by AND content = :about
