# SPDX-License-Identifier: Apache-2.0
"""The environment of alembic, which imports this file to migrate the tables.

:mod:`applier.watcher.database` passes the connection in the attributes of alembic's configuration.
"""

from alembic import context

from applier.watcher.tables import VERSION_TABLE, metadata


def migrate() -> None:
    """Run the migrations in the transaction of the connection that the caller has opened."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
    )
    with context.begin_transaction():
        context.run_migrations()


# There is no config when something else imports this file, such as a doctest collector.
if getattr(context, "config", None) is not None:
    migrate()
