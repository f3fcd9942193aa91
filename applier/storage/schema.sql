-- SPDX-License-Identifier: Apache-2.0
-- The tables of the record: plans, actions, their states and attempts, requests, and more. Words in braces stand for
-- types and options that applier/storage/schema.py has for each kind of database.
-- All names begin with actionplan_, so that they cannot collide with those of Watcher. Columns have the names of the
-- fields of planner.plan.model that they hold. Lists and mappings are stored as JSON in text columns, because text is
-- returned as it was written: the JSON types of servers sort keys, round large integers, or refuse values that others
-- accept.

CREATE TABLE actionplan_plan (
    -- A counter that gives the order in which plans were saved, independent of clocks.
    number {counter},
    uuid VARCHAR(36) NOT NULL,
    name VARCHAR(255),
    planner VARCHAR(255) NOT NULL,
    state VARCHAR(32) NOT NULL,
    -- How many approvals its guards demand; and 1 once an action of it was UNKNOWN, else 0: only then the states of its
    -- actions are read to find one that still is. They stand before the long texts, which a list skips.
    approvals INTEGER NOT NULL,
    doubtful INTEGER NOT NULL,
    -- Actions that were started before its last claim were interrupted: their durations are not known.
    claimed_at {moment},
    -- The digest of the plan when it was saved: it detects changes of rows to other valid values.
    digest VARCHAR(255) NOT NULL,
    created_at {moment},
    updated_at {moment},
    status_message {text},
    audit_uuid VARCHAR(255),
    strategy_name VARCHAR(255),
    efficacy_indicators {text} NOT NULL,
    global_efficacy {text} NOT NULL,
    limits {text} NOT NULL,
    tolerances {text} NOT NULL,
    -- The rules of its places, by token, as JSON.
    places {text},
    on_failure VARCHAR(32),
    cloud VARCHAR(255),
    -- When the facts were read that the plan was made of; its guards, the demands to be met before it may run, as
    -- JSON.
    facts_at {moment},
    guards {text},
    -- When a PENDING plan starts at the earliest; NULL: as soon as possible.
    start_at {moment},
    -- The state of a DELETED plan before it was removed.
    deleted_from VARCHAR(32),
    -- Who made the plan, as its history says.
    creator VARCHAR(255),
    warnings {text} NOT NULL,
    -- The overview of a long plan, as JSON: what is shown of it without reading its actions.
    overview {text},
    -- The claim: set while somebody runs the plan. Every write of the run must carry it.
    claim VARCHAR(36),
    claimant_host VARCHAR(255),
    claimant_pid INTEGER,
    claimant_user VARCHAR(255),
    -- The folder of its commands on its host.
    claimant_jobs {text},
    -- The options of its run, as JSON.
    claimant_options {text},
    requests INTEGER NOT NULL,
    heartbeat_at {moment},
    -- The seconds between two heartbeats of the claimant, and the requests made before its claim.
    heartbeat_interval_s DOUBLE PRECISION,
    requests_before INTEGER,
    -- An id of the last change: a writer that lost the answer of the database finds out by it whether its change
    -- was written.
    last_write VARCHAR(36),
    -- Numbers from the table ``turn``: when the plan became PENDING, and when it reserved its resources.
    queued INTEGER,
    reserved INTEGER,
    -- 1 if the run that holds the claim writes events, because somebody subscribes, else 0. No Boolean: the
    -- databases do not agree on what its default looks like.
    publishes INTEGER DEFAULT 0 NOT NULL
);
CREATE UNIQUE INDEX uq_actionplan_plan_uuid ON actionplan_plan (uuid);
-- Lists by one of these columns are in the order of the second one.
CREATE INDEX ix_actionplan_plan_created ON actionplan_plan (created_at, number);
CREATE INDEX ix_actionplan_plan_creator ON actionplan_plan (creator, number);
CREATE INDEX ix_actionplan_plan_name ON actionplan_plan (name);
CREATE INDEX ix_actionplan_plan_planner ON actionplan_plan (planner, number);
CREATE INDEX ix_actionplan_plan_state ON actionplan_plan (state, number);

-- The planned actions. No run changes these rows: they are wide, and an update would copy a whole row.
CREATE TABLE actionplan_action (
    plan VARCHAR(36) NOT NULL,
    uuid VARCHAR(36) NOT NULL,
    position INTEGER NOT NULL,
    name {text},
    resource_id {text},
    estimate_s DOUBLE PRECISION,
    timeout_s DOUBLE PRECISION,
    retries INTEGER NOT NULL,
    description {text},
    reason {text},
    input_parameters {text} NOT NULL,
    tokens {text} NOT NULL,
    parents {text} NOT NULL,
    needs {text} NOT NULL,
    needs_any {text} NOT NULL,
    triggers {text} NOT NULL,
    blocked_by {text},
    places {text},
    CONSTRAINT pk_actionplan_action PRIMARY KEY (plan, uuid),
    CONSTRAINT fk_actionplan_action_plan FOREIGN KEY (plan) REFERENCES actionplan_plan (uuid)
);

-- One narrow row for each action, with the columns that its runs change. None of these columns is in an index. In
-- PostgreSQL, a page has room for the next version of its rows, so that rows are updated in place.
CREATE TABLE actionplan_action_state (
    plan VARCHAR(36) NOT NULL,
    uuid VARCHAR(36) NOT NULL,
    -- A copy, because counts of states leave joins out, and durations are stored by type.
    action_type VARCHAR(255) NOT NULL,
    state VARCHAR(32) NOT NULL,
    outcome VARCHAR(32),
    state_reason VARCHAR(32),
    status_message {text},
    started_at {moment},
    ended_at {moment},
    attempts INTEGER NOT NULL,
    -- The wave of an action of a long plan: states are counted by it.
    wave INTEGER,
    CONSTRAINT pk_actionplan_action_state PRIMARY KEY (plan, uuid),
    CONSTRAINT fk_actionplan_action_state_plan FOREIGN KEY (plan) REFERENCES actionplan_plan (uuid)
) {in_place};

CREATE TABLE actionplan_request (
    plan VARCHAR(36) NOT NULL,
    number INTEGER NOT NULL,
    verb VARCHAR(32) NOT NULL,
    who VARCHAR(255) NOT NULL,
    why {text},
    action VARCHAR(36),
    created_at {moment} NOT NULL,
    limits {text},
    CONSTRAINT pk_actionplan_request PRIMARY KEY (plan, number),
    CONSTRAINT fk_actionplan_request_plan FOREIGN KEY (plan) REFERENCES actionplan_plan (uuid)
);

-- One row for each attempt that has ended, written when it ends. A running attempt is only in the row of its
-- action. There is no foreign key, because it would cost a look-up for each row, and the rows are made by a SELECT
-- from the table of actions.
CREATE TABLE actionplan_attempt (
    -- A counter that gives the order in which attempts ended, independent of clocks.
    id {counter},
    plan VARCHAR(36) NOT NULL,
    action VARCHAR(36) NOT NULL,
    number INTEGER NOT NULL,
    started_at {moment} NOT NULL,
    ended_at {moment} NOT NULL,
    state VARCHAR(32) NOT NULL,
    outcome VARCHAR(32),
    -- The action type if this attempt counts in the statistics of its durations, else NULL.
    measures VARCHAR(255),
    message {text},
    output {text},
    -- The worker on another machine that carried it out last; NULL if the applier did.
    worker VARCHAR(255),
    -- HOST:PID of the process in which it may still be at work; NULL if it is over.
    left_in VARCHAR(255)
);
CREATE INDEX ix_actionplan_attempt_measures ON actionplan_attempt (measures, id);
CREATE INDEX ix_actionplan_attempt_plan_action ON actionplan_attempt (plan, action);

-- One row for each change of a plan by an operator, and for each run: who, when and why. There is no foreign key,
-- because the removal of a damaged plan is recorded after its rows are deleted.
CREATE TABLE actionplan_history (
    -- A counter that gives the order of the changes of a plan, independent of clocks.
    number {counter},
    plan VARCHAR(36) NOT NULL,
    action VARCHAR(36),
    verb VARCHAR(32) NOT NULL,
    who VARCHAR(255) NOT NULL,
    project VARCHAR(255),
    address VARCHAR(255),
    request_id VARCHAR(255),
    why {text},
    at {moment} NOT NULL
);
CREATE INDEX ix_actionplan_history_plan ON actionplan_history (plan, number);

-- One row for each change that is to happen once, written in the transaction of the change: the second of two with
-- one key is rolled back. ``answer`` is what the first was answered with, as JSON; NULL until that is known.
-- ``plan`` and ``request_id`` are those of the history.
CREATE TABLE actionplan_answer (
    "key" VARCHAR(36) NOT NULL,
    digest VARCHAR(64) NOT NULL,
    plan VARCHAR(36) NOT NULL,
    request_id VARCHAR(255) NOT NULL,
    at {moment} NOT NULL,
    answer {text},
    CONSTRAINT pk_actionplan_answer PRIMARY KEY ("key")
);
CREATE INDEX ix_actionplan_answer_plan ON actionplan_answer (plan);

-- Who approved which plan. ``content`` identifies what was approved: once the plan has another content, the
-- approval is void.
CREATE TABLE actionplan_approval (
    -- A counter that gives the order of the approvals, independent of clocks.
    number {counter},
    plan VARCHAR(36) NOT NULL,
    content VARCHAR(255) NOT NULL,
    who VARCHAR(255) NOT NULL,
    project VARCHAR(255),
    why {text},
    at {moment} NOT NULL,
    CONSTRAINT fk_actionplan_approval_plan FOREIGN KEY (plan) REFERENCES actionplan_plan (uuid)
);
CREATE INDEX ix_actionplan_approval_plan ON actionplan_approval (plan, number);

-- The resources that plans have reserved. The plan with the smallest ``reserved`` was first.
CREATE TABLE actionplan_reservation (
    plan VARCHAR(36) NOT NULL,
    resource VARCHAR(255) NOT NULL,
    CONSTRAINT pk_actionplan_reservation PRIMARY KEY (plan, resource),
    CONSTRAINT fk_actionplan_reservation_plan FOREIGN KEY (plan) REFERENCES actionplan_plan (uuid)
);
CREATE INDEX ix_actionplan_reservation_resource ON actionplan_reservation (resource);

-- One row with the last number in the queues. The transaction that takes the next number locks the row until it
-- commits. So numbers are in the order of commits, unlike those of a sequence.
CREATE TABLE actionplan_turn (
    number INTEGER NOT NULL,
    -- The number of the last event, and of the last one that was deleted.
    events {count} DEFAULT 0 NOT NULL,
    events_deleted {count} DEFAULT 0 NOT NULL
);
INSERT INTO actionplan_turn (number) VALUES (0);

-- The changes of plans and actions, each written in the transaction of its change, if anybody subscribes. The
-- numbers are in the order of commits. There is no foreign key: events outlive a damaged plan that is removed.
CREATE TABLE actionplan_event (
    number {count} NOT NULL,
    plan VARCHAR(36) NOT NULL,
    action VARCHAR(36),
    type VARCHAR(32) NOT NULL,
    at {moment} NOT NULL,
    -- The state that an action has left, and the other data of the event as JSON.
    old VARCHAR(32),
    data {text} NOT NULL,
    CONSTRAINT pk_actionplan_event PRIMARY KEY (number)
);
CREATE INDEX ix_actionplan_event_plan ON actionplan_event (plan, number);

-- The subscriptions: that of each receiver, to which a service delivers events, and of readers.
CREATE TABLE actionplan_subscription (
    name VARCHAR(255) NOT NULL,
    -- Until when readers are subscribed; NULL for receivers, which are subscribed until removed.
    until {moment},
    -- All events up to this number were delivered, except those of plans that are held back.
    delivered {count} NOT NULL,
    -- As JSON: why the events of some plans, or all of them, cannot be delivered at present.
    held_back {text} NOT NULL,
    away {text},
    -- The process that delivers, and a count of its heartbeats.
    holder VARCHAR(36),
    beats {count} NOT NULL,
    CONSTRAINT pk_actionplan_subscription PRIMARY KEY (name)
);

-- The events that could not be delivered to a receiver in time, with a copy of each.
CREATE TABLE actionplan_dead_event (
    subscription VARCHAR(255) NOT NULL,
    number {count} NOT NULL,
    event {text} NOT NULL,
    why {text} NOT NULL,
    at {moment} NOT NULL,
    CONSTRAINT pk_actionplan_dead_event PRIMARY KEY (subscription, number)
);

-- The durations of actions that ran elsewhere, which were imported.
CREATE TABLE actionplan_duration (
    -- A counter that gives the order of the durations of a type.
    number {counter},
    action_type VARCHAR(255) NOT NULL,
    size VARCHAR(255),
    node VARCHAR(255),
    seconds DOUBLE PRECISION NOT NULL
);
CREATE INDEX ix_actionplan_duration_action_type ON actionplan_duration (action_type, number);

CREATE TABLE actionplan_service (
    uuid VARCHAR(36) NOT NULL,
    host VARCHAR(255) NOT NULL,
    pid INTEGER NOT NULL,
    "user" VARCHAR(255) NOT NULL,
    started_at {moment} NOT NULL,
    heartbeat_at {moment} NOT NULL,
    plans INTEGER NOT NULL,
    cloud VARCHAR(255) NOT NULL,
    CONSTRAINT pk_actionplan_service PRIMARY KEY (uuid)
);

-- The attempts that workers on other machines carry out, from the start on record to the end. There is no foreign
-- key, because it would cost a look-up for each row.
CREATE TABLE actionplan_worker_job (
    plan VARCHAR(36) NOT NULL,
    action VARCHAR(36) NOT NULL,
    attempt INTEGER NOT NULL,
    queue VARCHAR(255) NOT NULL,
    action_type VARCHAR(255) NOT NULL,
    -- A JobTask and a WorkerJobState of applier.store.worker_jobs.
    task VARCHAR(32) NOT NULL,
    state VARCHAR(32) NOT NULL,
    -- The worker that took it last; the first one that took it, if another took it later.
    worker VARCHAR(255),
    lost_worker VARCHAR(255),
    -- Set when the job is taken: only with this token the lease can be renewed, or the job ended.
    token VARCHAR(36),
    -- A StopReason, if the job has to stop.
    stop VARCHAR(32),
    -- All times are by the clock of the database.
    offered_at {moment} NOT NULL,
    sent_at {moment} NOT NULL,
    taken_at {moment},
    leased_until {moment},
    payload {text} NOT NULL,
    result {text},
    CONSTRAINT pk_actionplan_worker_job PRIMARY KEY (plan, action, attempt)
);
CREATE INDEX ix_actionplan_worker_job_worker ON actionplan_worker_job (worker);

-- The workers, each with a name that is new at its start. Times are by the clock of the database.
CREATE TABLE actionplan_worker (
    name VARCHAR(255) NOT NULL,
    host VARCHAR(255) NOT NULL,
    pid INTEGER NOT NULL,
    "user" VARCHAR(255) NOT NULL,
    version VARCHAR(255) NOT NULL,
    cloud VARCHAR(255),
    -- Lists as JSON: the queues that it serves, and its action types.
    queues {text} NOT NULL,
    types {text} NOT NULL,
    places INTEGER NOT NULL,
    running INTEGER NOT NULL,
    -- 1 if it has to take no more jobs, else 0.
    draining INTEGER NOT NULL,
    started_at {moment} NOT NULL,
    heard_at {moment} NOT NULL,
    CONSTRAINT pk_actionplan_worker PRIMARY KEY (name)
);

-- The version of these tables. The table has the form of those that alembic makes.
CREATE TABLE IF NOT EXISTS actionplan_alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT actionplan_alembic_version_pkc PRIMARY KEY (version_num)
);
