# SPDX-License-Identifier: Apache-2.0
"""Create the tables of runs and attempts."""

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
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
Uuid, Word = sa.String(36), sa.String(32)


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "actionplan_watcher_run",
        sa.Column("plan_uuid", Uuid, primary_key=True),
        sa.Column("claim", Uuid),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("user", sa.String(255), nullable=False),
        sa.Column("service_host", sa.String(255), nullable=False),
        sa.Column("interval_s", sa.Float, nullable=False),
        sa.Column("heartbeat_at", Moment, nullable=False),
        **MYSQL,
    )
    op.create_table(
        "actionplan_watcher_attempt",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("plan_uuid", Uuid, nullable=False),
        sa.Column("action_uuid", Uuid, nullable=False),
        sa.Column("action_type", sa.String(255), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("started_at", Moment, nullable=False),
        sa.Column("started_under", Uuid, nullable=False),
        sa.Column("ended_at", Moment),
        sa.Column("ended_under", Uuid),
        sa.Column("state", Word),
        sa.Column("outcome", Word),
        sa.Column("message", sa.Text),
        sa.UniqueConstraint(
            "plan_uuid", "action_uuid", "number", name="uniq_actionplan_watcher_attempt"
        ),
        sa.Index("actionplan_watcher_attempt_by_type", "action_type", "id"),
        **MYSQL,
    )


def downgrade() -> None:
    """Drop both tables with all their data."""
    op.drop_table("actionplan_watcher_attempt")
    op.drop_table("actionplan_watcher_run")
