# SPDX-License-Identifier: Apache-2.0
"""``actionplan diff``: the differences between two plans."""

from __future__ import annotations

import argparse

from applier.cli import arguments, plan_files
from applier.cli.arguments import PLAN_HELP, STDIN, add_format
from applier.cli.verb import Verb
from applier.operations import creation
from applier.operations.creation import SetOptions
from planner.errors import InvalidInput, Mistake
from planner.model import ActionPlan

#: Exit codes, as of diff(1): the plans differ; an error kept them from being compared.
DIFFERENT, TROUBLE = 1, 2


class Diff(Verb):
    """Show what differs between two plans: actions, links, limits and duration

    OLD and NEW are stored plans, or files: a saved plan, or a document, which is planned and not
    stored. Actions are matched by name, else by type, resource and parameters. Uuids, states and
    the order of the actions do not count. Exit codes: 0 the same, 1 different, 2 refused.
    """

    EXAMPLES = (
        "diff 1a2b3c4d 7f3a9100",
        "diff last maintenance.yaml",
        "diff plan.json last -f json",
    )
    REFUSAL = TROUBLE

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: two plans and a format."""
        parser = super().get_parser(prog_name)
        text = f"document or saved plan ('-': standard input); or {PLAN_HELP}"
        parser.add_argument("old", metavar="OLD", help=text)
        parser.add_argument("new", metavar="NEW", help="what it is compared with, named likewise")
        add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Compare two plans, and write the differences."""
        from applier.operations import difference_values, differences

        names = (parsed_args.old, parsed_args.new)
        if names == (STDIN, STDIN):
            raise InvalidInput([Mistake("standard input can be read only once", place="- -")])
        old, new = map(self._plan, names)
        session = self.session
        made = differences.compared(session, old, new, session.max_workers)
        if parsed_args.format == "table":
            from applier.cli.reporters import difference_text

            difference_text.show(made, names, session.action_types, self.app.stdout)
        else:
            value = difference_values.as_dict(made, session.action_types)
            self.app.stdout.write(plan_files.rendered(value, parsed_args.format))
        return 0 if made.found.is_empty else DIFFERENT

    def _plan(self, name: str) -> ActionPlan:
        if not arguments.is_file(name):
            return arguments.stored_plan(self.session, name)
        document = arguments.opened(name)
        return creation.planned(
            document,
            SetOptions(),
            self.session.conf,
            # Nothing runs, so a saved plan may come from a machine with other plugins.
            check_types=not document.is_plan,
            cloud=self.session.assembly.cloud_name,
        )
