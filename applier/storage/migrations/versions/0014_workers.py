# SPDX-License-Identifier: Apache-2.0
"""Add workers on other machines, and the jobs that they carry out."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0014"
down_revision = "0013"

MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
Uuid, Word, Line = sa.String(36), sa.String(32), sa.String(255)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "actionplan_worker_job",
        sa.Column("plan", Uuid),
        sa.Column("action", Uuid),
        sa.Column("attempt", sa.Integer, autoincrement=False),
        sa.Column("queue", Line, nullable=False),
        sa.Column("action_type", Line, nullable=False),
        sa.Column("task", Word, nullable=False),
        sa.Column("state", Word, nullable=False),
        sa.Column("worker", Line),
        sa.Column("lost_worker", Line),
        sa.Column("token", Uuid),
        sa.Column("stop", Word),
        sa.Column("offered_at", Moment, nullable=False),
        sa.Column("sent_at", Moment, nullable=False),
        sa.Column("taken_at", Moment),
        sa.Column("leased_until", Moment),
        sa.Column("payload", LongText, nullable=False),
        sa.Column("result", LongText),
        sa.PrimaryKeyConstraint("plan", "action", "attempt", name="pk_actionplan_worker_job"),
        **MYSQL,
    )
    op.create_index("ix_actionplan_worker_job_worker", "actionplan_worker_job", ["worker"])
    op.create_table(
        "actionplan_worker",
        sa.Column("name", Line),
        sa.Column("host", Line, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("user", Line, nullable=False),
        sa.Column("version", Line, nullable=False),
        sa.Column("cloud", Line),
        sa.Column("queues", LongText, nullable=False),
        sa.Column("types", LongText, nullable=False),
        sa.Column("places", sa.Integer, nullable=False),
        sa.Column("running", sa.Integer, nullable=False),
        sa.Column("draining", sa.Integer, nullable=False),
        sa.Column("started_at", Moment, nullable=False),
        sa.Column("heard_at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_actionplan_worker"),
        **MYSQL,
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("actionplan_worker")
    op.drop_table("actionplan_worker_job")
