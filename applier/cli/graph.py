# SPDX-License-Identifier: Apache-2.0
"""``actionplan graph``: draw a plan as a picture, or as text for other programs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection

from applier.cli import arguments, plan_files
from applier.cli.arguments import PLAN_HELP
from applier.cli.verb import Verb
from applier.operations import creation
from applier.operations.creation import SetOptions
from applier.timeline.values import LaneKind
from planner.errors import InvalidInput, Mistake, cut
from planner.model import JOIN, Action, ActionPlan
from planner.safe_text import visible
from planner.states import ActionState

FORMATS = ("dot", "mermaid", "svg", "timeline")


class Graph(Verb):
    """Draw a plan as svg, dot or mermaid, or its timeline

    PLAN may also be a file: a document or a saved plan. With --state, --node or --task, only the
    actions that match all of them are drawn, with the order between them. An RE may match any part
    of a name; use '^' and '$' to match the whole name. A timeline is svg, too: when each action
    ran or is expected to, and why it waited.
    """

    EXAMPLES = (
        "graph last -f svg --out plan.svg",
        "graph last -f svg --state FAILED --state FAILED_DEPENDENCIES --out failed.svg",
        "graph last -f timeline --out timeline.svg",
        "graph last -f timeline --lanes worker --out workers.svg",
        "graph last -f dot --node '^4$' | dot -Tpdf -o node-4.pdf",
        "graph maintenance.yaml -f mermaid",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, a format, filters and an output file."""
        parser = super().get_parser(prog_name)
        parser.add_argument("plan", metavar="FILE|PLAN", help=f"file; or {PLAN_HELP}")
        parser.add_argument("-f", "--format", choices=FORMATS, default="dot", help="default: dot")
        states = [str(state) for state in ActionState]
        parser.add_argument(
            "--state",
            metavar="STATE",
            action="append",
            type=str.upper,
            choices=states,
            help=f"only actions in this state, or in one of several: {', '.join(states)}",
        )
        parser.add_argument(
            "--lanes",
            choices=[str(kind) for kind in LaneKind],
            help="what the lanes of a timeline are; default: what suits the plan",
        )
        parser.add_argument("--node", metavar="RE", help="only actions of matching nodes")
        parser.add_argument("--task", metavar="RE", help="only actions with a matching name")
        parser.add_argument("--out", metavar="FILE", help="write to a file, not to the output")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Draw the plan and write the picture."""
        wanted = _Wanted(parsed_args)
        name = parsed_args.plan
        if arguments.is_file(name):
            document = arguments.opened(name)
            # A picture needs no plugin, so a saved plan may come from a machine with others.
            plan = creation.planned(
                document, SetOptions(), self.session.conf, check_types=not document.is_plan
            )
        else:
            plan = arguments.stored_plan(self.session, name)
        kept = {
            a.uuid for a in plan.actions if a.action_type != JOIN and wanted.has(plan.planner, a)
        }
        if plan.actions and not kept:
            self.note("Note: no action matches; the picture is empty.")
        draw = self._timeline if parsed_args.format == "timeline" else self._graph
        text = visible(draw(plan, kept, parsed_args))
        if parsed_args.out is not None:
            plan_files.write_text(parsed_args.out, text)
        else:
            self.app.stdout.write(text)
        return 0

    def _graph(self, plan: ActionPlan, kept: Collection[str], args: argparse.Namespace) -> str:
        from planner.render import dot, mermaid, svg

        render = {"dot": dot.render, "mermaid": mermaid.render, "svg": svg.render}
        return render[args.format](plan, lambda action: action.uuid in kept)

    def _timeline(self, plan: ActionPlan, kept: Collection[str], args: argparse.Namespace) -> str:
        from applier.assembly import now
        from applier.operations import timelines
        from applier.timeline import svg

        made = timelines.timeline(
            self.session.assembly,
            plan,
            self.session.max_workers,
            now=now(),
            is_stored=not arguments.is_file(args.plan),
            keep=lambda action: action.uuid in kept,
            kind=LaneKind(args.lanes) if args.lanes else None,
        )
        return svg.render(made)


class _Wanted:
    """The filters that the options set; raises InvalidInput with all mistakes."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._states = args.state
        mistakes: list[Mistake] = []
        if args.lanes and args.format != "timeline":
            mistakes.append(Mistake("only a timeline has lanes (-f timeline)", place="--lanes"))
        self._node = _compiled("--node", args.node, mistakes)
        self._task = _compiled("--task", args.task, mistakes)
        if mistakes:
            raise InvalidInput(mistakes)

    def has(self, planner: str, action: Action) -> bool:
        """Return whether an action passes all filters that are set."""
        from planner.render import swimlanes

        if self._states and action.state not in self._states:
            return False
        if self._task and not self._task.search(swimlanes.task_of(planner, action)):
            return False
        return not self._node or any(map(self._node.search, swimlanes.places_of(planner, action)))


def _compiled(option: str, text: str | None, mistakes: list[Mistake]) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except (re.error, RecursionError, OverflowError) as reason:
        place = f"{option} {cut(text or '', 100)}"
        mistakes.append(Mistake(f"not a regular expression: {reason}", place=place))
        return None
