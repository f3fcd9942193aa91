# SPDX-License-Identifier: Apache-2.0
"""Add the column for the blockers of an action."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column; NULL in existing plans means no blockers."""
    kind = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
    op.add_column("actionplan_action", sa.Column("blocked_by", kind))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("actionplan_action", "blocked_by")
