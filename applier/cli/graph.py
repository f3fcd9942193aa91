"""``actionplan graph``: a plan as text that other programs draw."""

from __future__ import annotations

import argparse
from pathlib import Path

from applier.cli.create import opened
from applier.cli.plans import PLAN_HELP
from applier.cli.verb import Verb
from planner import make_plan, saved
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
        parser.add_argument("plan", metavar="PLAN", help=f"{PLAN_HELP}; or a file")
        parser.add_argument(
            "-f", "--format", choices=sorted(FORMATS), default="dot", help="default: dot"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Load, draw, write."""
        if Path(parsed_args.plan).is_file():
            document = opened(parsed_args.plan)
            if saved.is_plan(document):
                plan = saved.read_plan(document)
            else:
                plan = make_plan(document, conf=self.session.conf)
        else:
            plan = self.session.plan(parsed_args.plan)
        self.app.stdout.write(FORMATS[parsed_args.format](plan))
        return 0
