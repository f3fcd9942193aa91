# SPDX-License-Identifier: Apache-2.0
"""``actionplan rollback``: make a plan that undoes another."""

from __future__ import annotations

import argparse
from uuid import uuid4

from applier.cli.arguments import with_plan
from applier.cli.verb import Verb


class Rollback(Verb):
    """Make a plan that undoes another plan in reverse order; show it and store it

    The limits of the other plan apply. No action is run: read the plan, then apply it.
    """

    EXAMPLES = ("rollback last", "rollback 7f3a91 --all")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("--all", action="store_true", help="show every action of a long plan")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Make the plan, store it, show it."""
        from applier.cli.reporters import plan_table
        from applier.operations.rolling_back import roll_back

        session = self.session
        plan = session.plan(parsed_args.plan)
        made = roll_back(session.assembly, self.operator, plan, lambda: str(uuid4()))
        plan_table.show(
            made, self.app.stdout, whole=parsed_args.all, max_workers=session.max_workers
        )
        self.say(f"It undoes what plan {plan.uuid[:8]} did.")
        self.say(f"Next: actionplan apply {made.uuid[:8]}")
        return 0
