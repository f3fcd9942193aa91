# SPDX-License-Identifier: Apache-2.0
"""``actionplan db backup``: copy the record while it is in use."""

from __future__ import annotations

import argparse

from applier.cli.verb import Verb


class DbBackup(Verb):
    """Copy a record in SQLite to a new file, while appliers run

    The copy has everything up to one moment. Of a damaged file no copy is made. The copy takes the
    place of the record when no process uses that: move the record and its files -wal and -shm away
    first. A record on a server is copied by the server's own program.
    """

    EXAMPLES = ("db backup /var/backups/actionplan.sqlite",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the argument: a file."""
        parser = super().get_parser(prog_name)
        parser.add_argument("file", metavar="FILE", help="a file that does not exist yet")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Copy the record."""
        from applier import configuration
        from applier.storage import connection
        from applier.storage.backup import backup

        url = configuration.connection(self.session.conf)
        backup(url, parsed_args.file)
        record = connection.shown(connection.parse(url))
        self.say(f"The record in {record} was copied to {parsed_args.file}.")
        return 0
