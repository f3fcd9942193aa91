# SPDX-License-Identifier: Apache-2.0
"""Add imported durations."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Line = sa.String(255)


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "actionplan_duration",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("action_type", Line, nullable=False),
        sa.Column("size", Line),
        sa.Column("node", Line),
        sa.Column("seconds", sa.Double, nullable=False),
        **MYSQL,
    )
    op.create_index(
        "ix_actionplan_duration_action_type", "actionplan_duration", ["action_type", "number"]
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("actionplan_duration")
