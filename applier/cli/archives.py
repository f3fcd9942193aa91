# SPDX-License-Identifier: Apache-2.0
"""``actionplan export`` and ``import``: a plan with its history, as a file."""

from __future__ import annotations

import argparse

from applier.cli import arguments
from applier.cli.arguments import with_plan
from applier.cli.plan_files import rendered, write_text
from applier.cli.verb import REFUSED, Verb


class ExportPlan(Verb):
    """Write a plan and all that is known of it, for 'import' elsewhere

    The file has the attempts with their output, the requests, the history, and all parameters
    of the plan. A plan that is under way is not exported. What is damaged is left out and named,
    and the exit code is 1.
    """

    EXAMPLES = ("export last --out maintenance.plan.json", "export 7f3a91")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and an output file."""
        parser = with_plan(super().get_parser(prog_name))
        parser.add_argument("--out", metavar="FILE", help="write it to a file")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the document; raises PlanConflict for a plan that is under way."""
        from applier.operations import archiving

        store = self.session.store
        exported = archiving.exported(store, store.find_plan(parsed_args.plan))
        text = rendered(exported, "json")
        if parsed_args.out is not None:
            write_text(parsed_args.out, text)
        else:
            self.app.stdout.write(text)
        left_out = exported.get("damaged", [])
        for what in left_out:
            self.note(f"Left out: {what}; see: actionplan db check")
        return REFUSED if left_out else 0


class ImportPlan(Verb):
    """Import a plan of another record, with its attempts, requests and history

    FILE is what 'export' wrote. The history records who imported it. Approvals are not imported,
    and the durations of its actions do not count here ('duration import').
    """

    EXAMPLES = ("import maintenance.plan.json",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the argument FILE."""
        parser = super().get_parser(prog_name)
        text = "what 'export' wrote ('-': standard input)"
        parser.add_argument("file", metavar="FILE", help=text)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Import the plan; raises InvalidInput, and PlanConflict if the record has it already."""
        from applier.operations import archiving

        archiving.import_from(self.session.store, arguments.opened(parsed_args.file), self.operator)
        return 0
