# SPDX-License-Identifier: Apache-2.0
"""Add the history of plans, and fill it with the requests that older releases recorded."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0009"
down_revision = "0008"

MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
Uuid, Word, Line = sa.String(36), sa.String(32), sa.String(255)
#: Copies the requests; those of one plan are numbered in their order.
REQUESTS = """
    INSERT INTO actionplan_history (plan, action, verb, who, why, at)
    SELECT plan, action, verb, who, why, created_at FROM actionplan_request
    ORDER BY plan, number
"""


def upgrade() -> None:
    """Create the table, and copy the requests."""
    op.create_table(
        "actionplan_history",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("plan", Uuid, nullable=False),
        sa.Column("action", Uuid),
        sa.Column("verb", Word, nullable=False),
        sa.Column("who", Line, nullable=False),
        sa.Column("project", Line),
        sa.Column("address", Line),
        sa.Column("request_id", Line),
        sa.Column("why", LongText),
        sa.Column("at", Moment, nullable=False),
        **MYSQL,
    )
    op.create_index("ix_actionplan_history_plan", "actionplan_history", ["plan", "number"])
    op.execute(REQUESTS)


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("actionplan_history")
