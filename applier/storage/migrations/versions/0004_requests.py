# SPDX-License-Identifier: Apache-2.0
"""Rename wishes to requests, add state reasons, and index actions for counts by state."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0004"
down_revision = "0003"

MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
Uuid, Word, Line = sa.String(36), sa.String(32), sa.String(255)

COLUMNS = ("plan", "number", "verb", "who", "why", "action", "created_at", "limits")
INDEX = "ix_actionplan_action_plan_state"
#: Before this revision, the reason was only in the message.
NOT_TRIGGERED = """
    UPDATE actionplan_action SET state_reason = 'not_triggered'
    WHERE state = 'SKIPPED' AND status_message = 'not triggered'
"""


def upgrade() -> None:
    """Move the requests, and set the state reason of actions that were not triggered."""
    move_requests("wish", "request")
    op.execute("ALTER TABLE actionplan_plan RENAME COLUMN wishes TO requests")
    op.add_column("actionplan_action", sa.Column("state_reason", Word))
    op.execute(NOT_TRIGGERED)
    index_actions("plan", "state", "uuid", "action_type")


def downgrade() -> None:
    """Move the requests back, and drop the reasons."""
    index_actions("plan", "state", "uuid")
    op.drop_column("actionplan_action", "state_reason")
    op.execute("ALTER TABLE actionplan_plan RENAME COLUMN requests TO wishes")
    move_requests("request", "wish")


def index_actions(*columns: str) -> None:
    """Create the index of actions by state again."""
    op.drop_index(INDEX, "actionplan_action")
    op.create_index(INDEX, "actionplan_action", columns)


def move_requests(old: str, new: str) -> None:
    """Copy a table to a new name, because not all databases can rename constraints."""
    plan = sa.ForeignKey("actionplan_plan.uuid", name=f"fk_actionplan_{new}_plan")
    op.create_table(
        f"actionplan_{new}",
        sa.Column("plan", Uuid, plan),
        sa.Column("number", sa.Integer, autoincrement=False),
        sa.Column("verb", Word, nullable=False),
        sa.Column("who", Line, nullable=False),
        sa.Column("why", LongText),
        sa.Column("action", Uuid),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("limits", LongText),
        sa.PrimaryKeyConstraint("plan", "number", name=f"pk_actionplan_{new}"),
        **MYSQL,
    )
    names = ", ".join(COLUMNS)
    op.execute(f"INSERT INTO actionplan_{new} ({names}) SELECT {names} FROM actionplan_{old}")  # noqa: S608
    op.drop_table(f"actionplan_{old}")
