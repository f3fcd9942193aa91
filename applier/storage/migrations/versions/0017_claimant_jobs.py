# SPDX-License-Identifier: Apache-2.0
"""Add to claims the folder of the claimant's commands on its host."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0017"
down_revision = "0016"

PLANS = "actionplan_plan"
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")


def upgrade() -> None:
    """Add the column."""
    op.add_column(PLANS, sa.Column("claimant_jobs", LongText))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column(PLANS, "claimant_jobs")
