# SPDX-License-Identifier: Apache-2.0
"""Defines the tables of the store: plans, actions, their states and attempts, requests, and more.

All names begin with ``actionplan_``, so that they cannot collide with those of Watcher. Columns
have the names of the fields of :mod:`planner.model` that they hold. Lists and mappings are stored
as JSON in text columns, because text is returned as it was written: the JSON types of servers sort
keys, round large integers, or refuse values that others accept. ``migrations`` creates the tables,
and defines their engine and character set in MySQL.
"""

from __future__ import annotations

import sqlalchemy as sa

from applier.storage.columns import Count, LongText, Moment, Uuid, Word

#: The table in which alembic stores the version of these tables.
VERSION_TABLE = "actionplan_alembic_version"


metadata = sa.MetaData()

plans = sa.Table(
    "actionplan_plan",
    metadata,
    # A counter that gives the order in which plans were saved, independent of clocks.
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("uuid", Uuid, nullable=False),
    sa.Column("name", sa.String(255)),
    sa.Column("planner", sa.String(255), nullable=False),
    sa.Column("state", Word, nullable=False),
    sa.Column("created_at", Moment),
    sa.Column("updated_at", Moment),
    sa.Column("status_message", LongText),
    sa.Column("audit_uuid", sa.String(255)),
    sa.Column("strategy_name", sa.String(255)),
    sa.Column("efficacy_indicators", LongText, nullable=False),
    sa.Column("global_efficacy", LongText, nullable=False),
    sa.Column("limits", LongText, nullable=False),
    sa.Column("tolerances", LongText, nullable=False),
    # The rules of its places, by token, as JSON.
    sa.Column("places", LongText),
    sa.Column("on_failure", Word),
    sa.Column("cloud", sa.String(255)),
    # When the facts were read that the plan was made of; its guards, the demands to be met before
    # it may run, as JSON.
    sa.Column("facts_at", Moment),
    sa.Column("guards", LongText),
    # When a PENDING plan starts at the earliest; NULL: as soon as possible.
    sa.Column("start_at", Moment),
    # The state of a DELETED plan before it was removed.
    sa.Column("deleted_from", Word),
    # Who made the plan, as its history says.
    sa.Column("creator", sa.String(255)),
    sa.Column("warnings", LongText, nullable=False),
    # The digest of the plan when it was saved: it detects changes of rows to other valid values.
    sa.Column("digest", sa.String(255), nullable=False),
    # The claim: set while somebody runs the plan. Every write of the run must carry it.
    sa.Column("claim", sa.String(36)),
    sa.Column("claimant_host", sa.String(255)),
    sa.Column("claimant_pid", sa.Integer),
    sa.Column("claimant_user", sa.String(255)),
    # The folder of its commands on its host.
    sa.Column("claimant_jobs", LongText),
    sa.Column("requests", sa.Integer, nullable=False),
    sa.Column("heartbeat_at", Moment),
    # The seconds between two heartbeats of the claimant, and the requests made before its claim.
    sa.Column("heartbeat_interval_s", sa.Double),
    sa.Column("requests_before", sa.Integer),
    # Actions that were started before this claim were interrupted: their durations are not known.
    sa.Column("claimed_at", Moment),
    # An id of the last change: a writer that lost the answer of the database finds out by it
    # whether its change was written.
    sa.Column("last_write", Uuid),
    # Numbers from the table ``turn``: when the plan became PENDING, and when it reserved its
    # resources.
    sa.Column("queued", sa.Integer),
    sa.Column("reserved", sa.Integer),
    # 1 if the run that holds the claim writes events, because somebody subscribes, else 0. No
    # Boolean: the databases do not agree on what its default looks like.
    sa.Column("publishes", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.UniqueConstraint("uuid", name="uq_actionplan_plan_uuid"),
    sa.Index("ix_actionplan_plan_name", "name"),
    # Lists by one of these columns are in the order of the second one.
    sa.Index("ix_actionplan_plan_state", "state", "number"),
    sa.Index("ix_actionplan_plan_planner", "planner", "number"),
    sa.Index("ix_actionplan_plan_creator", "creator", "number"),
    sa.Index("ix_actionplan_plan_created", "created_at", "number"),
)

#: The planned actions. No run changes these rows: they are wide, and an update would copy a whole
#: row.
actions = sa.Table(
    "actionplan_action",
    metadata,
    sa.Column("plan", Uuid, sa.ForeignKey(plans.c.uuid, name="fk_actionplan_action_plan")),
    sa.Column("uuid", Uuid),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("name", LongText),
    sa.Column("resource_id", LongText),
    sa.Column("estimate_s", sa.Double),
    sa.Column("timeout_s", sa.Double),
    sa.Column("retries", sa.Integer, nullable=False),
    sa.Column("description", LongText),
    sa.Column("reason", LongText),
    sa.Column("input_parameters", LongText, nullable=False),
    sa.Column("tokens", LongText, nullable=False),
    sa.Column("parents", LongText, nullable=False),
    sa.Column("needs", LongText, nullable=False),
    sa.Column("needs_any", LongText, nullable=False),
    sa.Column("triggers", LongText, nullable=False),
    sa.Column("blocked_by", LongText),
    sa.Column("places", LongText),
    sa.PrimaryKeyConstraint("plan", "uuid", name="pk_actionplan_action"),
)

#: One narrow row for each action, with the columns that its runs change. None of these columns is
#: in an index. In PostgreSQL, a page has room for the next version of its rows, so that rows are
#: updated in place.
action_states = sa.Table(
    "actionplan_action_state",
    metadata,
    sa.Column("plan", Uuid, sa.ForeignKey(plans.c.uuid, name="fk_actionplan_action_state_plan")),
    sa.Column("uuid", Uuid),
    # A copy, because counts of states leave joins out, and durations are stored by type.
    sa.Column("action_type", sa.String(255), nullable=False),
    sa.Column("state", Word, nullable=False),
    sa.Column("outcome", Word),
    sa.Column("state_reason", Word),
    sa.Column("status_message", LongText),
    sa.Column("started_at", Moment),
    sa.Column("ended_at", Moment),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.PrimaryKeyConstraint("plan", "uuid", name="pk_actionplan_action_state"),
)

requests = sa.Table(
    "actionplan_request",
    metadata,
    sa.Column("plan", Uuid, sa.ForeignKey(plans.c.uuid, name="fk_actionplan_request_plan")),
    sa.Column("number", sa.Integer, autoincrement=False),
    sa.Column("verb", Word, nullable=False),
    sa.Column("who", sa.String(255), nullable=False),
    sa.Column("why", LongText),
    sa.Column("action", Uuid),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("limits", LongText),
    sa.PrimaryKeyConstraint("plan", "number", name="pk_actionplan_request"),
)

#: One row for each attempt that has ended, written when it ends. A running attempt is only in the
#: row of its action. There is no foreign key, because it would cost a look-up for each row, and the
#: rows are made by a SELECT from the table of actions.
attempts = sa.Table(
    "actionplan_attempt",
    metadata,
    # A counter that gives the order in which attempts ended, independent of clocks.
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("plan", Uuid, nullable=False),
    sa.Column("action", Uuid, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("ended_at", Moment, nullable=False),
    sa.Column("state", Word, nullable=False),
    sa.Column("outcome", Word),
    # The action type if this attempt counts in the statistics of its durations, else NULL.
    sa.Column("measures", sa.String(255)),
    sa.Column("message", LongText),
    sa.Column("output", LongText),
    # The worker on another machine that carried it out last; NULL if the applier did.
    sa.Column("worker", sa.String(255)),
    # HOST:PID of the process in which it may still be at work; NULL if it is over.
    sa.Column("left_in", sa.String(255)),
    sa.Index("ix_actionplan_attempt_plan_action", "plan", "action"),
    sa.Index("ix_actionplan_attempt_measures", "measures", "id"),
)

#: One row for each change of a plan by an operator, and for each run: who, when and why. There is
#: no foreign key, because the removal of a damaged plan is recorded after its rows are deleted.
history = sa.Table(
    "actionplan_history",
    metadata,
    # A counter that gives the order of the changes of a plan, independent of clocks.
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("plan", Uuid, nullable=False),
    sa.Column("action", Uuid),
    sa.Column("verb", Word, nullable=False),
    sa.Column("who", sa.String(255), nullable=False),
    sa.Column("project", sa.String(255)),
    sa.Column("address", sa.String(255)),
    sa.Column("request_id", sa.String(255)),
    sa.Column("why", LongText),
    sa.Column("at", Moment, nullable=False),
    sa.Index("ix_actionplan_history_plan", "plan", "number"),
)

#: One row for each change that is to happen once, written in the transaction of the change: the
#: second of two with one key is rolled back. ``answer`` is what the first was answered with, as
#: JSON; NULL until that is known. ``plan`` and ``request_id`` are those of the history.
answers = sa.Table(
    "actionplan_answer",
    metadata,
    sa.Column("key", Uuid),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("plan", Uuid, nullable=False),
    sa.Column("request_id", sa.String(255), nullable=False),
    sa.Column("at", Moment, nullable=False),
    sa.Column("answer", LongText),
    sa.PrimaryKeyConstraint("key", name="pk_actionplan_answer"),
    sa.Index("ix_actionplan_answer_plan", "plan"),
)

#: Who approved which plan. ``content`` identifies what was approved: once the plan has another
#: content, the approval is void.
approvals = sa.Table(
    "actionplan_approval",
    metadata,
    # A counter that gives the order of the approvals, independent of clocks.
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column(
        "plan",
        Uuid,
        sa.ForeignKey(plans.c.uuid, name="fk_actionplan_approval_plan"),
        nullable=False,
    ),
    sa.Column("content", sa.String(255), nullable=False),
    sa.Column("who", sa.String(255), nullable=False),
    sa.Column("project", sa.String(255)),
    sa.Column("why", LongText),
    sa.Column("at", Moment, nullable=False),
    sa.Index("ix_actionplan_approval_plan", "plan", "number"),
)

#: The resources that plans have reserved. The plan with the smallest ``reserved`` was first.
reservations = sa.Table(
    "actionplan_reservation",
    metadata,
    sa.Column("plan", Uuid, sa.ForeignKey(plans.c.uuid, name="fk_actionplan_reservation_plan")),
    sa.Column("resource", sa.String(255)),
    sa.PrimaryKeyConstraint("plan", "resource", name="pk_actionplan_reservation"),
    sa.Index("ix_actionplan_reservation_resource", "resource"),
)

#: One row with the last number in the queues. The transaction that takes the next number locks the
#: row until it commits. So numbers are in the order of commits, unlike those of a sequence.
turn = sa.Table(
    "actionplan_turn",
    metadata,
    sa.Column("number", sa.Integer, nullable=False),
    # The number of the last event, and of the last one that was deleted.
    sa.Column("events", Count, nullable=False, server_default=sa.text("0")),
    sa.Column("events_deleted", Count, nullable=False, server_default=sa.text("0")),
)

#: The changes of plans and actions, each written in the transaction of its change, if anybody
#: subscribes. The numbers are in the order of commits. There is no foreign key: events outlive a
#: damaged plan that is removed.
events = sa.Table(
    "actionplan_event",
    metadata,
    sa.Column("number", Count, autoincrement=False),
    sa.Column("plan", Uuid, nullable=False),
    sa.Column("action", Uuid),
    sa.Column("type", Word, nullable=False),
    sa.Column("at", Moment, nullable=False),
    # The state that an action has left, and the other data of the event as JSON.
    sa.Column("old", Word),
    sa.Column("data", LongText, nullable=False),
    sa.PrimaryKeyConstraint("number", name="pk_actionplan_event"),
    sa.Index("ix_actionplan_event_plan", "plan", "number"),
)

#: The subscriptions: that of each receiver, to which a service delivers events, and of readers.
subscriptions = sa.Table(
    "actionplan_subscription",
    metadata,
    sa.Column("name", sa.String(255)),
    # Until when readers are subscribed; NULL for receivers, which are subscribed until removed.
    sa.Column("until", Moment),
    # All events up to this number were delivered, except those of plans that are held back.
    sa.Column("delivered", Count, nullable=False),
    # As JSON: why the events of some plans, or all of them, cannot be delivered at present.
    sa.Column("held_back", LongText, nullable=False),
    sa.Column("away", LongText),
    # The process that delivers, and a count of its heartbeats.
    sa.Column("holder", Uuid),
    sa.Column("beats", Count, nullable=False),
    sa.PrimaryKeyConstraint("name", name="pk_actionplan_subscription"),
)

#: The events that could not be delivered to a receiver in time, with a copy of each.
dead_events = sa.Table(
    "actionplan_dead_event",
    metadata,
    sa.Column("subscription", sa.String(255)),
    sa.Column("number", Count, autoincrement=False),
    sa.Column("event", LongText, nullable=False),
    sa.Column("why", LongText, nullable=False),
    sa.Column("at", Moment, nullable=False),
    sa.PrimaryKeyConstraint("subscription", "number", name="pk_actionplan_dead_event"),
)

#: The durations of actions that ran elsewhere, which were imported.
imported_durations = sa.Table(
    "actionplan_duration",
    metadata,
    # A counter that gives the order of the durations of a type.
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("action_type", sa.String(255), nullable=False),
    sa.Column("size", sa.String(255)),
    sa.Column("node", sa.String(255)),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Index("ix_actionplan_duration_action_type", "action_type", "number"),
)

services = sa.Table(
    "actionplan_service",
    metadata,
    sa.Column("uuid", Uuid),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("user", sa.String(255), nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("heartbeat_at", Moment, nullable=False),
    sa.Column("plans", sa.Integer, nullable=False),
    sa.Column("cloud", sa.String(255), nullable=False),
    sa.PrimaryKeyConstraint("uuid", name="pk_actionplan_service"),
)

#: The attempts that workers on other machines carry out, from the start on record to the end. There
#: is no foreign key, because it would cost a look-up for each row.
worker_jobs = sa.Table(
    "actionplan_worker_job",
    metadata,
    sa.Column("plan", Uuid),
    sa.Column("action", Uuid),
    sa.Column("attempt", sa.Integer, autoincrement=False),
    sa.Column("queue", sa.String(255), nullable=False),
    sa.Column("action_type", sa.String(255), nullable=False),
    # A JobTask and a WorkerJobState of applier.store.worker_jobs.
    sa.Column("task", Word, nullable=False),
    sa.Column("state", Word, nullable=False),
    # The worker that took it last; the first one that took it, if another took it later.
    sa.Column("worker", sa.String(255)),
    sa.Column("lost_worker", sa.String(255)),
    # Set when the job is taken: only with this token the lease can be renewed, or the job ended.
    sa.Column("token", Uuid),
    # A StopReason, if the job has to stop.
    sa.Column("stop", Word),
    # All times are by the clock of the database.
    sa.Column("offered_at", Moment, nullable=False),
    sa.Column("sent_at", Moment, nullable=False),
    sa.Column("taken_at", Moment),
    sa.Column("leased_until", Moment),
    sa.Column("payload", LongText, nullable=False),
    sa.Column("result", LongText),
    sa.PrimaryKeyConstraint("plan", "action", "attempt", name="pk_actionplan_worker_job"),
    sa.Index("ix_actionplan_worker_job_worker", "worker"),
)

#: The workers, each with a name that is new at its start. Times are by the clock of the database.
workers = sa.Table(
    "actionplan_worker",
    metadata,
    sa.Column("name", sa.String(255)),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("user", sa.String(255), nullable=False),
    sa.Column("version", sa.String(255), nullable=False),
    sa.Column("cloud", sa.String(255)),
    # Lists as JSON: the queues that it serves, and its action types.
    sa.Column("queues", LongText, nullable=False),
    sa.Column("types", LongText, nullable=False),
    sa.Column("places", sa.Integer, nullable=False),
    sa.Column("running", sa.Integer, nullable=False),
    # 1 if it has to take no more jobs, else 0.
    sa.Column("draining", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("heard_at", Moment, nullable=False),
    sa.PrimaryKeyConstraint("name", name="pk_actionplan_worker"),
)
