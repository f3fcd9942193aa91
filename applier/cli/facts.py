# SPDX-License-Identifier: Apache-2.0
"""``actionplan facts``: the current state of the cloud, as the facts of a document."""

from __future__ import annotations

import argparse

from applier.cli.plan_files import rendered, write_text
from applier.cli.verb import Verb


class Facts(Verb):
    """Write what the cloud holds now: instances, hosts, services, flavors

    This is the field 'facts' of a document, for planners that need to know where instances are.
    """

    EXAMPLES = ("facts", "facts -f json", "facts --out facts.yaml")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a format and an output file."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "-f", "--format", choices=["yaml", "json"], default="yaml", help="default: yaml"
        )
        parser.add_argument("--out", metavar="FILE", help="write them to a file")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Read the cloud, and write the facts."""
        text = rendered(self.session.assembly.facts(), parsed_args.format)
        if parsed_args.out is not None:
            write_text(parsed_args.out, text)
        else:
            self.app.stdout.write(text)
        return 0
