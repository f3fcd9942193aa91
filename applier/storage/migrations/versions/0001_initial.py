# SPDX-License-Identifier: Apache-2.0
"""Create the tables as :mod:`applier.storage.tables` defines them.

The first release replaces this by the statements that create its tables; until then, each change of
the tables is a new version of this one migration.
"""

from alembic import op

from applier.storage.schema_version import REVISIONS
from applier.storage.tables import metadata, turn

revision = REVISIONS[0]
down_revision = None

MYSQL = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}


def upgrade() -> None:
    """Create all tables, and the row with the numbers of the queues."""
    created = type(metadata)()
    for table in metadata.sorted_tables:
        table.to_metadata(created).kwargs.update(MYSQL)
    # In PostgreSQL, a page has room for the next version of its rows.
    created.tables["actionplan_action_state"].kwargs["postgresql_with"] = {"fillfactor": "70"}
    created.create_all(op.get_bind())
    op.bulk_insert(turn, [{"number": 0}])
