# SPDX-License-Identifier: Apache-2.0
"""Add the column for the blockers of an action."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column; in plans that are there nothing is blocked so."""
    kind = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
    op.add_column("actionplan_action", sa.Column("blocked_by", kind))


def downgrade() -> None:
    """Forget it."""
    op.drop_column("actionplan_action", "blocked_by")
