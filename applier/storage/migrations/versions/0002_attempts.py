# SPDX-License-Identifier: Apache-2.0
"""Add attempts, heartbeats, queues, reservations and services; add limits to wishes."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0002"
down_revision = "0001"

MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
Uuid, Word, Line = sa.String(36), sa.String(32), sa.String(255)

#: The new columns of plans.
PLAN = (
    ("heartbeat_at", Moment),
    ("claimed_at", Moment),
    ("last_write", Uuid),
    ("queued", sa.Integer),
    ("reserved", sa.Integer),
)
#: Copies the attempt that revision 0001 stores in the row of its action, if it has ended.
ATTEMPTS_OF_ACTIONS = """
    INSERT INTO actionplan_attempt
        (plan, action, number, started_at, ended_at, state, outcome, measures, message, output)
    SELECT a.plan, a.uuid, a.attempts, a.started_at, a.ended_at, a.state, a.outcome,
        CASE WHEN a.state = 'SUCCEEDED' AND a.outcome IN ('changed', 'created')
            THEN a.action_type END,
        a.status_message, a.output
    FROM actionplan_action a JOIN actionplan_plan p ON p.uuid = a.plan
    WHERE a.attempts > 0 AND a.started_at IS NOT NULL AND a.ended_at IS NOT NULL
    ORDER BY p.number, a.position
"""
#: Copies the output of the last attempt back to the row of its action.
OUTPUT_OF_ACTIONS = """
    UPDATE actionplan_action SET output = (
        SELECT t.output FROM actionplan_attempt t
        WHERE t.plan = actionplan_action.plan AND t.action = actionplan_action.uuid
            AND t.number = actionplan_action.attempts
    )
"""


def upgrade() -> None:
    """Create the tables, and copy the attempt of each action that ran."""
    for name, kind in PLAN:
        op.add_column("actionplan_plan", sa.Column(name, kind))
    op.add_column("actionplan_wish", sa.Column("limits", LongText))
    create_attempt()
    op.execute(ATTEMPTS_OF_ACTIONS)
    op.drop_column("actionplan_action", "output")
    create_reservation()
    create_service()
    turn = op.create_table(
        "actionplan_turn", sa.Column("number", sa.Integer, nullable=False), **MYSQL
    )
    op.bulk_insert(turn, [{"number": 0}])


def downgrade() -> None:
    """Move the last attempt of each action back to the row of the action."""
    op.add_column("actionplan_action", sa.Column("output", LongText))
    op.execute(OUTPUT_OF_ACTIONS)
    for name in ("turn", "service", "reservation", "attempt"):
        op.drop_table(f"actionplan_{name}")
    op.drop_column("actionplan_wish", "limits")
    for name, _ in PLAN:
        op.drop_column("actionplan_plan", name)


def create_attempt() -> None:
    """Create a table with one row for each ended attempt; ``id`` is the order of the ends."""
    op.create_table(
        "actionplan_attempt",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("plan", Uuid, nullable=False),
        sa.Column("action", Uuid, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("started_at", Moment, nullable=False),
        sa.Column("ended_at", Moment, nullable=False),
        sa.Column("state", Word, nullable=False),
        sa.Column("outcome", Word),
        sa.Column("measures", Line),
        sa.Column("message", LongText),
        sa.Column("output", LongText),
        **MYSQL,
    )
    columns = {"plan_action": ["plan", "action"], "measures": ["measures", "id"]}
    for name, indexed in columns.items():
        op.create_index(f"ix_actionplan_attempt_{name}", "actionplan_attempt", indexed)


def create_reservation() -> None:
    """Create a table with one row for each resource that a plan reserved."""
    plan = sa.ForeignKey("actionplan_plan.uuid", name="fk_actionplan_reservation_plan")
    op.create_table(
        "actionplan_reservation",
        sa.Column("plan", Uuid, plan),
        sa.Column("resource", Line),
        sa.PrimaryKeyConstraint("plan", "resource", name="pk_actionplan_reservation"),
        **MYSQL,
    )
    op.create_index("ix_actionplan_reservation_resource", "actionplan_reservation", ["resource"])


def create_service() -> None:
    """Create a table with one row for each service that reports."""
    op.create_table(
        "actionplan_service",
        sa.Column("uuid", Uuid),
        sa.Column("host", Line, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("user", Line, nullable=False),
        sa.Column("started_at", Moment, nullable=False),
        sa.Column("heartbeat_at", Moment, nullable=False),
        sa.Column("plans", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("uuid", name="pk_actionplan_service"),
        **MYSQL,
    )
