# SPDX-License-Identifier: Apache-2.0
"""The record as a whole: ``db check``, ``backup``, ``upgrade``."""

from __future__ import annotations

import argparse

from applier.cli.arguments import argument
from applier.cli.exit_codes import REFUSED
from applier.cli.verb import Verb
from applier.wording import count


class DbCheck(Verb):
    """Check the record, and list all damage

    It checks the version of the tables, indexes, the integrity of the file or tables, states,
    claims, JSON, links between actions, that each plan is as it was saved, and that no row is left
    without its plan. It changes nothing, and may be used while appliers run. The exit code is 1 if
    anything is wrong.
    """

    EXAMPLES = ("db check", "--config-file watcher.conf db check")

    def take_action(self, parsed_args: argparse.Namespace) -> int:  # noqa: ARG002
        from applier import configuration
        from applier.storage.check_and_backup import check

        found = check(configuration.connection(self.session.conf))
        for problem in found.problems:
            self.say(problem)
        plans = count(found.plans, "plan")
        if found.problems:
            problems = count(len(found.problems), "problem")
            self.note(f"The record in {found.record} is damaged: {problems}, {plans} read.")
            return REFUSED
        self.say(f"The record in {found.record} is sound: {plans}.")
        return 0


class DbBackup(Verb):
    """Copy a record in SQLite to a new file, while appliers run

    The copy has everything up to one moment. Of a damaged file no copy is made. The copy takes the
    place of the record when no process uses that: move the record and its files -wal and -shm away
    first. A record on a server is copied by the server's own program.
    """

    EXAMPLES = ("db backup /var/backups/actionplan.sqlite",)
    ARGUMENTS = (argument("FILE", "a file that does not exist yet"),)

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier import configuration
        from applier.storage.check_and_backup import backup

        backup(configuration.connection(self.session.conf), parsed_args.file)
        self.say(f"The record in {self.session.record} was copied to {parsed_args.file}.")
        return 0


class DbUpgrade(Verb):
    """Create or upgrade the tables of the record

    A new SQLite file gets its tables by itself; a server gets them only by this command.
    """

    EXAMPLES = ("db upgrade", "--config-file watcher.conf db upgrade")

    def take_action(self, parsed_args: argparse.Namespace) -> int:  # noqa: ARG002
        from applier import configuration
        from applier.storage import schema_version

        schema_version.upgrade(configuration.connection(self.session.conf))
        self.say(f"The record in {self.session.record} is up to date.")
        return 0
