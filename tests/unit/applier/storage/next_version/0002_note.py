# SPDX-License-Identifier: Apache-2.0
"""Add a column and fill it: a migration that only tests have."""

import sqlalchemy as sa
from alembic import op

from applier.storage.schema_version import REVISIONS

revision, down_revision = "0002", REVISIONS[0]


def upgrade() -> None:
    """Add the column, and fill it with the names of the plans."""
    op.add_column("actionplan_plan", sa.Column("note", sa.String(255)))
    op.execute("UPDATE actionplan_plan SET note = name")


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("actionplan_plan", "note")
