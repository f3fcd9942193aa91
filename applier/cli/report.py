# SPDX-License-Identifier: Apache-2.0
"""``actionplan report``: a plan and its results as one HTML file, to show to others."""

from __future__ import annotations

import argparse

from applier.cli import arguments, plan_files
from applier.cli.arguments import PLAN_HELP
from applier.cli.verb import Verb
from applier.operations import creation
from applier.operations.creation import SetOptions


class ReportPlan(Verb):
    """Write a page about a plan: what happened, why, and what is left

    One HTML file that any browser shows, without a network: timeline, graph, all actions with their
    output, what more workers would change, history. PLAN may also be a file: a document or a saved
    plan; of those, and of a plan that has not begun, it is a forecast. Values of secret parameters
    are left out.
    """

    EXAMPLES = ("report last -o report.html", "report maintenance.yaml -o before.html")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and an output file."""
        parser = super().get_parser(prog_name)
        parser.add_argument("plan", metavar="FILE|PLAN", help=f"file; or {PLAN_HELP}")
        text = "write to a file, not to the output"
        parser.add_argument("-o", "--out", metavar="FILE", help=text)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the report."""
        from applier.assembly import now
        from applier.report import content, page

        name, session = parsed_args.plan, self.session
        is_stored = not arguments.is_file(name)
        if is_stored:
            plan = arguments.stored_plan(session, name)
        else:
            document = arguments.opened(name)
            # Nothing runs, so a saved plan may come from a machine with other plugins.
            plan = creation.planned(
                document, SetOptions(), session.conf, check_types=not document.is_plan
            )
        made = content.report(
            session.assembly, plan, session.max_workers, now=now(), is_stored=is_stored
        )
        text = page.render(made)
        if parsed_args.out is not None:
            plan_files.write_text(parsed_args.out, text)
        else:
            self.app.stdout.write(text)
        return 0
