# SPDX-License-Identifier: Apache-2.0
"""Create the tables as ``schema.sql`` defines them.

The first release replaces this by the statements that create its tables; until then, each change of
the tables is a new version of this one migration.
"""

from alembic import op

from applier.storage.connection import DRIVERS
from applier.storage.schema_version import REVISIONS

revision = REVISIONS[0]
down_revision = None


def upgrade() -> None:
    """Create all tables, and the row with the numbers of the queues."""
    dialect, _, _ = DRIVERS[op.get_bind().dialect.name]
    for statement in dialect.creation():
        op.execute(statement)
