# SPDX-License-Identifier: Apache-2.0
"""Add to plans the earliest time of their start."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0015"
down_revision = "0014"

PLANS = "actionplan_plan"
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")


def upgrade() -> None:
    """Add the column."""
    op.add_column(PLANS, sa.Column("start_at", Moment))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column(PLANS, "start_at")
