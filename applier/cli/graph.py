"""``actionplan graph``: a plan as text that other programs draw."""

from __future__ import annotations

import argparse

from applier.cli import files
from applier.cli.arguments import PLAN_HELP
from applier.cli.settings import Settings
from applier.cli.verb import Verb
from planner.render import dot, mermaid

FORMATS = {"dot": dot.render, "mermaid": mermaid.render}


class Graph(Verb):
    """Draw a plan as dot or mermaid

    PLAN may also be a file: a document or a saved plan. Solid lines are needs, dashed ones order.
    """

    EXAMPLES = (
        "graph last -f mermaid",
        "graph last -f dot | dot -Tsvg -o plan.svg",
        "graph maintenance.yaml -f mermaid",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Take a plan and a format."""
        parser = super().get_parser(prog_name)
        parser.add_argument("plan", metavar="FILE|PLAN", help=f"file; or {PLAN_HELP}")
        parser.add_argument(
            "-f", "--format", choices=sorted(FORMATS), default="dot", help="default: dot"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Load, draw, write."""
        name = parsed_args.plan
        if files.is_file(name):
            plan = files.planned(files.opened(name), Settings(), self.session.conf)
        else:
            plan = files.kept(self.session, name)
        self.app.stdout.write(FORMATS[parsed_args.format](plan))
        return 0
