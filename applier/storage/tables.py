# SPDX-License-Identifier: Apache-2.0
"""The tables of the record: plans, actions, their states and attempts, requests, and more.

Names begin with ``actionplan_``, so that they never meet those of Watcher. Columns are named as
the fields of :mod:`planner.model` that they hold. Lists and mappings stand as JSON in text
columns, because text comes back as it was written: the JSON types of servers sort keys, round
large integers or refuse what others accept. ``migrations`` makes the
same tables, step by step, and says their engine and character set in MySQL.
"""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa

#: Where alembic notes the version of these tables.
VERSION_TABLE = "actionplan_alembic_version"


class Moment(sa.TypeDecorator[datetime]):
    """An aware datetime, kept in UTC to the microsecond, whatever the zone of the server."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[datetime]:
        """MySQL cuts a plain DATETIME to whole seconds."""
        if dialect.name != "mysql":
            return sa.DateTime()
        # Loaded where it is needed: it takes as long as all of SQLite's.
        from sqlalchemy.dialects import mysql

        return mysql.DATETIME(fsp=6)

    def process_bind_param(
        self,
        value: datetime | None,
        dialect: sa.Dialect,  # noqa: ARG002
    ) -> datetime | None:
        """Turn it into UTC and drop the zone, which not every database keeps."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(
        self,
        value: datetime | None,
        dialect: sa.Dialect,  # noqa: ARG002
    ) -> datetime | None:
        """Give it its zone back."""
        return None if value is None else value.replace(tzinfo=UTC)


class LongText(sa.TypeDecorator[str]):
    """Text without a bound in practice: a plain TEXT of MySQL ends at 64 KiB."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[str]:
        """MySQL has a type of its own for it."""
        if dialect.name != "mysql":
            return sa.Text()
        from sqlalchemy.dialects import mysql

        return mysql.LONGTEXT()


Uuid = sa.String(36)
Word = sa.String(32)

metadata = sa.MetaData()

plans = sa.Table(
    "actionplan_plan",
    metadata,
    # The order in which plans were saved: no clock decides which is the last.
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
    sa.Column("on_failure", Word),
    sa.Column("warnings", LongText, nullable=False),
    # Set while somebody runs the plan; every write of the run must carry it.
    sa.Column("claim", sa.String(36)),
    sa.Column("claimant_host", sa.String(255)),
    sa.Column("claimant_pid", sa.Integer),
    sa.Column("claimant_user", sa.String(255)),
    sa.Column("requests", sa.Integer, nullable=False),
    sa.Column("heartbeat_at", Moment),
    # What was started before was cut off: how long it took, nobody knows.
    sa.Column("claimed_at", Moment),
    # What the last writer called its change: who lost the answer sees whether it was written.
    sa.Column("last_write", Uuid),
    # Numbers of ``turn``: when it became PENDING, and when it reserved what it works on.
    sa.Column("queued", sa.Integer),
    sa.Column("reserved", sa.Integer),
    sa.UniqueConstraint("uuid", name="uq_actionplan_plan_uuid"),
    sa.Index("ix_actionplan_plan_name", "name"),
    sa.Index("ix_actionplan_plan_state", "state"),
)

#: What was planned. No run changes it: these rows are wide, and to write one again would copy it.
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
    sa.PrimaryKeyConstraint("plan", "uuid", name="pk_actionplan_action"),
)

#: One narrow row for each action: what its runs change. No column that changes is in an index, and
#: in PostgreSQL a page has room for the next version of its rows, so that it changes in place.
action_states = sa.Table(
    "actionplan_action_state",
    metadata,
    sa.Column("plan", Uuid, sa.ForeignKey(plans.c.uuid, name="fk_actionplan_action_state_plan")),
    sa.Column("uuid", Uuid),
    # Here, because states are counted without joins, and durations are told by type.
    sa.Column("action_type", sa.String(255), nullable=False),
    sa.Column("state", Word, nullable=False),
    sa.Column("outcome", Word),
    sa.Column("state_reason", Word),
    sa.Column("status_message", LongText),
    sa.Column("started_at", Moment),
    sa.Column("ended_at", Moment),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.PrimaryKeyConstraint("plan", "uuid", name="pk_actionplan_action_state"),
    postgresql_with={"fillfactor": "70"},
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

#: One row per attempt that ended, written when it ends; the one that runs is the action's row. No
#: foreign key: it would cost a look-up for each, and rows come from a SELECT on the action.
attempts = sa.Table(
    "actionplan_attempt",
    metadata,
    # The order in which they ended: no clock decides which are the latest.
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("plan", Uuid, nullable=False),
    sa.Column("action", Uuid, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("started_at", Moment, nullable=False),
    sa.Column("ended_at", Moment, nullable=False),
    sa.Column("state", Word, nullable=False),
    sa.Column("outcome", Word),
    # The action type whose duration this attempt tells; NULL if it tells none.
    sa.Column("measures", sa.String(255)),
    sa.Column("message", LongText),
    sa.Column("output", LongText),
    sa.Index("ix_actionplan_attempt_plan_action", "plan", "action"),
    sa.Index("ix_actionplan_attempt_measures", "measures", "id"),
)

#: A resource that a plan reserved; which plan was first, its ``reserved`` says.
reservations = sa.Table(
    "actionplan_reservation",
    metadata,
    sa.Column("plan", Uuid, sa.ForeignKey(plans.c.uuid, name="fk_actionplan_reservation_plan")),
    sa.Column("resource", sa.String(255)),
    sa.PrimaryKeyConstraint("plan", "resource", name="pk_actionplan_reservation"),
    sa.Index("ix_actionplan_reservation_resource", "resource"),
)

#: One row: the last number that was given to a plan that queues up. Whoever takes the next holds
#: the row until it commits, so that numbers are in the order of commits; a sequence's are not.
turn = sa.Table(
    "actionplan_turn",
    metadata,
    sa.Column("number", sa.Integer, nullable=False),
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
    sa.PrimaryKeyConstraint("uuid", name="pk_actionplan_service"),
)
