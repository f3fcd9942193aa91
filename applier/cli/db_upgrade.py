# SPDX-License-Identifier: Apache-2.0
"""``actionplan db upgrade``: create or upgrade the tables of the record."""

from __future__ import annotations

import argparse

from applier.cli.verb import Verb


class DbUpgrade(Verb):
    """Create or upgrade the tables of the record

    A new SQLite file gets its tables by itself; a server gets them only by this command.
    """

    EXAMPLES = ("db upgrade", "--config-file watcher.conf db upgrade")

    def take_action(self, parsed_args: argparse.Namespace) -> int:  # noqa: ARG002
        """Upgrade the tables to the schema of this release."""
        from applier import configuration
        from applier.storage import connection, schema_version

        url = configuration.connection(self.session.conf)
        schema_version.upgrade(url)
        self.say(f"The record in {connection.shown(connection.parse(url))} is up to date.")
        return 0
