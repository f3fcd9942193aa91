# SPDX-License-Identifier: Apache-2.0
"""Move the states of actions from the wide table of planned actions to a narrow table."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0005"
down_revision = "0004"

MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
Moment = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")
LongText = sa.Text().with_variant(mysql.LONGTEXT(), "mysql")
Uuid, Word, Line = sa.String(36), sa.String(32), sa.String(255)

ACTION, STATE = "actionplan_action", "actionplan_action_state"
INDEX = "ix_actionplan_action_plan_state"
#: The columns to move: type, and whether a value is required.
COLUMNS: dict[str, tuple[Any, bool]] = {
    "action_type": (Line, True),
    "state": (Word, True),
    "outcome": (Word, False),
    "state_reason": (Word, False),
    "status_message": (LongText, False),
    "started_at": (Moment, False),
    "ended_at": (Moment, False),
    "attempts": (sa.Integer, True),
}
NAMES = ", ".join(COLUMNS)
#: In plan order, so that the rows of actions that run one after another are on one page.
MOVE = f"""
    INSERT INTO {STATE} (plan, uuid, {NAMES})
    SELECT plan, uuid, {NAMES} FROM {ACTION} ORDER BY plan, position
"""  # noqa: S608
#: One column at a time: no UPDATE that sets several columns from a subquery works everywhere.
MOVE_BACK = """
    UPDATE {table} SET {column} = (
        SELECT {column} FROM {states} s WHERE s.plan = {table}.plan AND s.uuid = {table}.uuid
    )
"""


def upgrade() -> None:
    """Create the table of states, and move the columns that runs change to it."""
    plan = sa.ForeignKey("actionplan_plan.uuid", name="fk_actionplan_action_state_plan")
    op.create_table(
        STATE,
        sa.Column("plan", Uuid, plan),
        sa.Column("uuid", Uuid),
        *(sa.Column(name, kind, nullable=not must) for name, (kind, must) in COLUMNS.items()),
        sa.PrimaryKeyConstraint("plan", "uuid", name="pk_actionplan_action_state"),
        postgresql_with={"fillfactor": "70"},
        **MYSQL,
    )
    op.execute(MOVE)
    op.drop_index(INDEX, ACTION)
    with op.batch_alter_table(ACTION) as table:
        for name in COLUMNS:
            table.drop_column(name)


def downgrade() -> None:
    """Move the columns back, and drop the table of states."""
    with op.batch_alter_table(ACTION) as table:
        for name, (kind, _) in COLUMNS.items():
            table.add_column(sa.Column(name, kind))
    for name in COLUMNS:
        op.execute(MOVE_BACK.format(table=ACTION, column=name, states=STATE))
    with op.batch_alter_table(ACTION) as table:
        for name, (kind, must) in COLUMNS.items():
            if must:
                table.alter_column(name, existing_type=kind, nullable=False)
    op.create_index(INDEX, ACTION, ["plan", "state", "uuid", "action_type"])
    op.drop_table(STATE)
