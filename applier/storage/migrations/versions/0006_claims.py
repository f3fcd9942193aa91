# SPDX-License-Identifier: Apache-2.0
"""Add to each claim its heartbeat interval, and the number of requests that were made before it."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

PLAN = "actionplan_plan"
COLUMNS = {"heartbeat_interval_s": sa.Double, "requests_before": sa.Integer}
#: Which requests were made under a claim of an older release is not known: none counts.
NONE_SINCE = "UPDATE actionplan_plan SET requests_before = requests"


def upgrade() -> None:
    """Add the columns."""
    for name, kind in COLUMNS.items():
        op.add_column(PLAN, sa.Column(name, kind()))
    op.execute(NONE_SINCE)


def downgrade() -> None:
    """Drop the columns."""
    for name in COLUMNS:
        op.drop_column(PLAN, name)
