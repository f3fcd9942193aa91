# SPDX-License-Identifier: Apache-2.0
"""``actionplan why``: explain when an action starts, why it waits, or why it did not run."""

from __future__ import annotations

import argparse

from applier.cli.arguments import with_action
from applier.cli.reporters.column_widths import wrapped
from applier.cli.verb import Verb
from applier.operations.creation import read_settings, refuse_planning
from applier.operations.lookup import find_action


class Why(Verb):
    """Explain when an action starts, what it waits for, or why it did not run

    Before a run, the explanation is based on a forecast, during a run on the stored states.
    """

    EXAMPLES = ("why last db-1", "why last db-1 --set max_workers=8")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, an action, and how many workers."""
        parser = with_action(super().get_parser(prog_name))
        parser.add_argument(
            "--set",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="option of the run (max_workers=4), as given to apply",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the explanation; for a PENDING action of a plan that does not run, a forecast."""
        from applier.cli.reporters.plan_table import console
        from applier.operations import explanation

        settings = read_settings(parsed_args.set)
        refuse_planning(settings, None)
        session = self.session
        plan = session.plan(parsed_args.plan)
        action = find_action(plan, parsed_args.action)
        workers = settings.max_workers or session.max_workers
        window = session.assembly.waits_for(plan)(action)
        lines = explanation.explained(session, plan, action, workers, window)
        width = console(self.app.stdout).width
        for line in lines:
            for part in wrapped(line, 4, width):
                self.say(part)
        return 0
