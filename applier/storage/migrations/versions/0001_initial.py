# SPDX-License-Identifier: Apache-2.0
"""Create the tables of plans, actions and wishes (requests are called wishes up to 0003)."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None

MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
Uuid, Word, Line = sa.String(36), sa.String(32), sa.String(255)


def upgrade() -> None:
    """Create the three tables."""
    create_plan()
    create_action()
    create_wish()


def downgrade() -> None:
    """Drop the tables with all their data."""
    op.drop_table("actionplan_wish")
    op.drop_table("actionplan_action")
    op.drop_table("actionplan_plan")


def create_plan() -> None:
    """Create a table with one row for each plan; ``number`` is the order of saving."""
    op.create_table(
        "actionplan_plan",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("uuid", Uuid, nullable=False),
        sa.Column("name", Line),
        sa.Column("planner", Line, nullable=False),
        sa.Column("state", Word, nullable=False),
        sa.Column("created_at", Moment),
        sa.Column("updated_at", Moment),
        sa.Column("status_message", LongText),
        sa.Column("audit_uuid", Line),
        sa.Column("strategy_name", Line),
        sa.Column("efficacy_indicators", LongText, nullable=False),
        sa.Column("global_efficacy", LongText, nullable=False),
        sa.Column("limits", LongText, nullable=False),
        sa.Column("tolerances", LongText, nullable=False),
        sa.Column("on_failure", Word),
        sa.Column("warnings", LongText, nullable=False),
        sa.Column("claim", Uuid),
        sa.Column("claimant_host", Line),
        sa.Column("claimant_pid", sa.Integer),
        sa.Column("claimant_user", Line),
        sa.Column("wishes", sa.Integer, nullable=False),
        sa.UniqueConstraint("uuid", name="uq_actionplan_plan_uuid"),
        **MYSQL,
    )
    op.create_index("ix_actionplan_plan_name", "actionplan_plan", ["name"])
    op.create_index("ix_actionplan_plan_state", "actionplan_plan", ["state"])


def create_action() -> None:
    """Create a table with one row for each action; ``position`` is its index in the plan."""
    plan = sa.ForeignKey("actionplan_plan.uuid", name="fk_actionplan_action_plan")
    links = ("input_parameters", "tokens", "parents", "needs", "needs_any", "triggers")
    op.create_table(
        "actionplan_action",
        sa.Column("plan", Uuid, plan),
        sa.Column("uuid", Uuid),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", LongText),
        sa.Column("action_type", Line, nullable=False),
        sa.Column("resource_id", LongText),
        sa.Column("state", Word, nullable=False),
        sa.Column("outcome", Word),
        sa.Column("started_at", Moment),
        sa.Column("ended_at", Moment),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("estimate_s", sa.Double),
        sa.Column("timeout_s", sa.Double),
        sa.Column("retries", sa.Integer, nullable=False),
        sa.Column("status_message", LongText),
        sa.Column("description", LongText),
        sa.Column("reason", LongText),
        *(sa.Column(name, LongText, nullable=False) for name in links),
        sa.Column("output", LongText),
        sa.PrimaryKeyConstraint("plan", "uuid", name="pk_actionplan_action"),
        **MYSQL,
    )
    op.create_index(
        "ix_actionplan_action_plan_state", "actionplan_action", ["plan", "state", "uuid"]
    )


def create_wish() -> None:
    """Create a table with one row for each wish; ``number`` counts those of a plan from 1."""
    plan = sa.ForeignKey("actionplan_plan.uuid", name="fk_actionplan_wish_plan")
    op.create_table(
        "actionplan_wish",
        sa.Column("plan", Uuid, plan),
        sa.Column("number", sa.Integer, autoincrement=False),
        sa.Column("verb", Word, nullable=False),
        sa.Column("who", Line, nullable=False),
        sa.Column("why", LongText),
        sa.Column("action", Uuid),
        sa.Column("created_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("plan", "number", name="pk_actionplan_wish"),
        **MYSQL,
    )
