# SPDX-License-Identifier: Apache-2.0
"""Deletes what the added tables keep of plans that Watcher has removed from its database."""

from __future__ import annotations

import argparse
from typing import Any

import sqlalchemy as sa
from cliff.command import Command

from applier.watcher import claims, database
from applier.watcher.tables import attempts, runs

#: How many plans are deleted in one transaction.
AT_ONCE = 200


@database.translated
def purge() -> int:
    """Delete the rows of up to AT_ONCE plans that Watcher does not have; return how many."""
    with database.writing() as connection:
        gone = sa.select(runs.c.plan_uuid).where(
            runs.c.plan_uuid.not_in(sa.select(claims.PLANS.c.uuid))
        )
        plans = list(connection.execute(gone.limit(AT_ONCE)).scalars())
        for table in (attempts, runs):
            connection.execute(sa.delete(table).where(table.c.plan_uuid.in_(plans)))
    return len(plans)


class PurgeWatcherPlans(Command):
    """Delete what is kept of plans that 'watcher-db-manage purge' has removed

    An applier does that for up to 200 plans when it runs its first one.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> int:  # noqa: ARG002
        """Delete until nothing is left, and say of how many plans."""
        program: Any = self.app
        program.session.open()
        database.prepare()
        number = 0
        while found := purge():
            number += found
        program.stdout.write(f"Deleted what was kept of {number} plans.\n")
        return 0
