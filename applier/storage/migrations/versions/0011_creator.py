# SPDX-License-Identifier: Apache-2.0
"""Add to plans their creator and their state before a removal, and the indexes of lists.

The creator of an existing plan is copied from its history.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

PLANS = "actionplan_plan"
#: The creator is the author of the first history entry, if that is a creation or a rollback.
FILL = """
    UPDATE actionplan_plan SET creator = (
        SELECT who FROM actionplan_history
        WHERE plan = actionplan_plan.uuid AND verb IN ('create', 'rollback')
        AND number = (
            SELECT MIN(number) FROM actionplan_history WHERE plan = actionplan_plan.uuid
        )
    )
"""
#: By the end of its name: the first column of an index. The second one is the number of the plan.
INDEXES = {"state": "state", "planner": "planner", "creator": "creator", "created": "created_at"}


def upgrade() -> None:
    """Add the columns, fill that of the creator, and make the indexes."""
    op.add_column(PLANS, sa.Column("creator", sa.String(255)))
    op.add_column(PLANS, sa.Column("deleted_from", sa.String(32)))
    op.execute(FILL)
    op.drop_index("ix_actionplan_plan_state", PLANS)
    for name, column in INDEXES.items():
        op.create_index(f"ix_actionplan_plan_{name}", PLANS, [column, "number"])


def downgrade() -> None:
    """Drop the columns, and the indexes but that of the state alone."""
    for name in INDEXES:
        op.drop_index(f"ix_actionplan_plan_{name}", PLANS)
    op.create_index("ix_actionplan_plan_state", PLANS, ["state"])
    op.drop_column(PLANS, "deleted_from")
    op.drop_column(PLANS, "creator")
