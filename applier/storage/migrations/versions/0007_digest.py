# SPDX-License-Identifier: Apache-2.0
"""Add to each plan the digest that it had when it was saved; older plans have none."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

PLAN = "actionplan_plan"


def upgrade() -> None:
    """Add the column."""
    op.add_column(PLAN, sa.Column("digest", sa.String(255)))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column(PLAN, "digest")
