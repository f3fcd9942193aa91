# SPDX-License-Identifier: Apache-2.0
"""``actionplan duration list | export | import``: how long earlier actions took."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from applier.cli import arguments
from applier.cli.plan_files import rendered, write_text
from applier.cli.verb import ListVerb, Verb
from applier.wording import duration


class DurationList(ListVerb):
    """List how long actions took, by type, size and node: what forecasts expect

    The size is the flavor among the parameters, the node the first one that an action touches.
    Few samples of a size or node are pooled with all of the type. Only those that succeeded and
    changed something count.
    """

    EXAMPLES = ("duration list", "duration list -f json")
    NOTHING = "No action is on record that succeeded and changed something."

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        """Return a row for each type, size and node."""
        from applier.operations import durations

        whole = parsed_args.formatter != "table"
        found = durations.listed(self.session.store, list(self.session.action_types))
        columns = ("type", "size", "node", "samples", "imported", "median", "9 in 10")
        if whole:
            return durations.Known._fields, found
        return columns, (
            (
                *(known.action_type, known.size or "", known.node or ""),
                *(known.samples, known.imported),
                *(duration(known.median_s), duration(known.nine_in_ten_s)),
            )
            for known in found
        )


class DurationExport(Verb):
    """Write the durations that were measured here, for 'duration import' elsewhere

    At most the latest 500 of each action type; imported ones are left out.
    """

    EXAMPLES = ("duration export --out durations.json", "duration export -f yaml")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a format and an output file."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "-f", "--format", choices=["json", "yaml"], default="json", help="default: json"
        )
        parser.add_argument("--out", metavar="FILE", help="write them to a file")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Write the document."""
        from applier.operations import durations

        found = durations.exported(self.session.store, list(self.session.action_types))
        text = rendered(found, parsed_args.format)
        if parsed_args.out is not None:
            write_text(parsed_args.out, text)
        else:
            self.app.stdout.write(text)
        return 0


class DurationImport(Verb):
    """Let forecasts use durations that were measured elsewhere

    FILE is what 'duration export' wrote. They replace those imported before for the same types, and
    count after those that were measured here. The history records who imported them.
    """

    EXAMPLES = ("duration import durations.json",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the argument FILE."""
        parser = super().get_parser(prog_name)
        text = "what 'duration export' wrote ('-': standard input)"
        parser.add_argument("file", metavar="FILE", help=text)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Import the durations; raises InvalidInput."""
        from applier.operations import durations

        document = arguments.opened(parsed_args.file)
        durations.import_from(self.session.store, document, self.operator)
        return 0
