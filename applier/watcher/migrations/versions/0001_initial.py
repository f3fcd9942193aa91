# SPDX-License-Identifier: Apache-2.0
"""Create the tables of runs and attempts, as :mod:`applier.watcher.tables` defines them.

The first release replaces this by the statements that create its tables.
"""

from alembic import op

from applier.watcher.tables import REVISIONS, metadata

revision = REVISIONS[0]
down_revision = None


def upgrade() -> None:
    """Create both tables."""
    metadata.create_all(op.get_bind())


def downgrade() -> None:
    """Drop both tables with all their data."""
    metadata.drop_all(op.get_bind())
