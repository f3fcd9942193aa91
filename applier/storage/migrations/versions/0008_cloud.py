# SPDX-License-Identifier: Apache-2.0
"""Add to plans and services the name of their cloud; older ones have none."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

TABLES = ("actionplan_plan", "actionplan_service")


def upgrade() -> None:
    """Add the columns."""
    for table in TABLES:
        op.add_column(table, sa.Column("cloud", sa.String(255)))


def downgrade() -> None:
    """Drop the columns."""
    for table in TABLES:
        op.drop_column(table, "cloud")
