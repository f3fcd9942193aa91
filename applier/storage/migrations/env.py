# SPDX-License-Identifier: Apache-2.0
"""The environment of alembic, which imports this file to change tables.

:mod:`applier.storage.schema_version` passes the connection in the configuration.
"""

from alembic import context

from applier.storage.schema import VERSION_TABLE


def migrate() -> None:
    """Run the migrations in the transaction of the connection that the caller has opened."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, version_table=VERSION_TABLE)
    with context.begin_transaction():
        context.run_migrations()


# There is no config when something else imports this file, such as a doctest collector.
if getattr(context, "config", None) is not None:
    migrate()
