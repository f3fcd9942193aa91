# SPDX-License-Identifier: Apache-2.0
"""Run by alembic for every change of the tables, on the connection that ``schema`` gives it."""

from alembic import context

from applier.storage.tables import VERSION_TABLE, metadata


def migrate() -> None:
    """Run the migrations in the transaction of the connection that the caller has opened."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
    )
    with context.begin_transaction():
        context.run_migrations()


# Not there when the file is only looked at, as by a collector of doctests.
if getattr(context, "config", None) is not None:
    migrate()
