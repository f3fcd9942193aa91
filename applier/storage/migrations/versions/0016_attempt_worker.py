# SPDX-License-Identifier: Apache-2.0
"""Add to attempts the name of the worker on another machine that carried them out."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

ATTEMPTS = "actionplan_attempt"


def upgrade() -> None:
    """Add the column."""
    op.add_column(ATTEMPTS, sa.Column("worker", sa.String(255)))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column(ATTEMPTS, "worker")
