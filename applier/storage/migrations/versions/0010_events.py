# SPDX-License-Identifier: Apache-2.0
"""Add the events of plans, and subscriptions to them."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0010"
down_revision = "0009"

MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
Count = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Uuid, Word, Line = sa.String(36), sa.String(32), sa.String(255)


def upgrade() -> None:
    """Create the tables and columns, without a subscription."""
    op.add_column(
        "actionplan_plan",
        sa.Column("publishes", sa.Integer, nullable=False, server_default=sa.text("0")),
    )
    for name in ("events", "events_deleted"):
        op.add_column(
            "actionplan_turn", sa.Column(name, Count, nullable=False, server_default=sa.text("0"))
        )
    op.create_table(
        "actionplan_event",
        sa.Column("number", Count, autoincrement=False),
        sa.Column("plan", Uuid, nullable=False),
        sa.Column("action", Uuid),
        sa.Column("type", Word, nullable=False),
        sa.Column("at", Moment, nullable=False),
        sa.Column("old", Word),
        sa.Column("data", LongText, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_actionplan_event"),
        **MYSQL,
    )
    op.create_index("ix_actionplan_event_plan", "actionplan_event", ["plan", "number"])
    op.create_table(
        "actionplan_subscription",
        sa.Column("name", Line),
        sa.Column("until", Moment),
        sa.Column("delivered", Count, nullable=False),
        sa.Column("held_back", LongText, nullable=False),
        sa.Column("away", LongText),
        sa.Column("holder", Uuid),
        sa.Column("beats", Count, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_actionplan_subscription"),
        **MYSQL,
    )
    op.create_table(
        "actionplan_dead_event",
        sa.Column("subscription", Line),
        sa.Column("number", Count, autoincrement=False),
        sa.Column("event", LongText, nullable=False),
        sa.Column("why", LongText, nullable=False),
        sa.Column("at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("subscription", "number", name="pk_actionplan_dead_event"),
        **MYSQL,
    )


def downgrade() -> None:
    """Drop the tables and columns."""
    for table in ("actionplan_dead_event", "actionplan_subscription", "actionplan_event"):
        op.drop_table(table)
    for name in ("events_deleted", "events"):
        op.drop_column("actionplan_turn", name)
    op.drop_column("actionplan_plan", "publishes")
