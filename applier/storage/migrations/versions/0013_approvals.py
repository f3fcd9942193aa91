# SPDX-License-Identifier: Apache-2.0
"""Add approvals, and to plans their guards and the time at which their facts were read."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0013"
down_revision = "0012"

PLANS = "actionplan_plan"
MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
Line = sa.String(255)


def upgrade() -> None:
    """Add the columns, and create the table."""
    op.add_column(PLANS, sa.Column("facts_at", Moment))
    op.add_column(PLANS, sa.Column("guards", LongText))
    op.create_table(
        "actionplan_approval",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column(
            "plan",
            sa.String(36),
            sa.ForeignKey("actionplan_plan.uuid", name="fk_actionplan_approval_plan"),
            nullable=False,
        ),
        sa.Column("content", Line, nullable=False),
        sa.Column("who", Line, nullable=False),
        sa.Column("project", Line),
        sa.Column("why", LongText),
        sa.Column("at", Moment, nullable=False),
        **MYSQL,
    )
    op.create_index("ix_actionplan_approval_plan", "actionplan_approval", ["plan", "number"])


def downgrade() -> None:
    """Drop the table, and the columns."""
    op.drop_table("actionplan_approval")
    op.drop_column(PLANS, "guards")
    op.drop_column(PLANS, "facts_at")
