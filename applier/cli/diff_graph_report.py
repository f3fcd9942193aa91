# SPDX-License-Identifier: Apache-2.0
"""Plans in other forms: ``diff`` of two of them, ``graph`` and ``report`` of one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection

from applier.assembly import now
from applier.cli import arguments
from applier.cli.arguments import PLAN_HELP, STDIN, argument, format_of
from applier.cli.verb import Verb, rendered
from applier.timeline.values import LaneKind
from planner.errors import InvalidInput, Mistake, cut
from planner.plan.model import JOIN, Action, ActionPlan
from planner.plan.states import ActionState
from planner.safe_text import visible

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
    ARGUMENTS = (
        argument("OLD", f"document or saved plan ('-': standard input); or {PLAN_HELP}"),
        argument("NEW", "what it is compared with, named likewise"),
        format_of(),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier.operations import differences

        names = (parsed_args.old, parsed_args.new)
        if names == (STDIN, STDIN):
            raise InvalidInput([Mistake("standard input can be read only once", place="- -")])
        session = self.session
        old, new = (arguments.planned(session, name, for_cloud=True)[0] for name in names)
        made = differences.compared(session, old, new, session.max_workers)
        if parsed_args.format == "table":
            for line in differences.lines(made, names, session.action_types):
                self.say_wrapped(line, len(line) - len(line.lstrip()) + 4)
        else:
            self.write(
                rendered(differences.as_dict(made, session.action_types), parsed_args.format)
            )
        return 0 if made.found.is_empty else DIFFERENT


FORMATS = ("dot", "mermaid", "svg", "timeline")
_STATES = [str(state) for state in ActionState]


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
    ARGUMENTS = (
        argument("FILE|PLAN", f"file; or {PLAN_HELP}", dest="plan"),
        argument("-f --format", "default: dot", choices=FORMATS, default="dot"),
        argument(
            "--state STATE",
            f"only actions in this state, or in one of several: {', '.join(_STATES)}",
            action="append",
            type=str.upper,
            choices=_STATES,
        ),
        argument(
            "--lanes",
            "what the lanes of a timeline are; default: what suits the plan",
            choices=[str(kind) for kind in LaneKind],
        ),
        argument("--node RE", "only actions of matching nodes"),
        argument("--task RE", "only actions with a matching name"),
        argument("--out FILE", "write to a file, not to the output"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        wanted = _Wanted(parsed_args)
        plan, _ = arguments.planned(self.session, parsed_args.plan)
        kept = {
            a.uuid for a in plan.actions if a.action_type != JOIN and wanted.has(plan.planner, a)
        }
        if plan.actions and not kept:
            self.note("Note: no action matches; the picture is empty.")
        draw = self._timeline if parsed_args.format == "timeline" else self._graph
        text = visible(draw(plan, kept, parsed_args))
        self.write(text, parsed_args.out)
        return 0

    def _graph(self, plan: ActionPlan, kept: Collection[str], args: argparse.Namespace) -> str:
        from planner.render import dot_and_mermaid, svg

        render = {"dot": dot_and_mermaid.dot, "mermaid": dot_and_mermaid.mermaid, "svg": svg.render}
        return render[args.format](plan, lambda action: action.uuid in kept)

    def _timeline(self, plan: ActionPlan, kept: Collection[str], args: argparse.Namespace) -> str:
        from applier.operations import timelines
        from applier.timeline import svg

        made = timelines.timeline(
            self.session,
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


class ReportPlan(Verb):
    """Write a page about a plan: what happened, why, and what is left

    One HTML file that any browser shows, without a network: timeline, graph, all actions with their
    output, what more workers would change, history. PLAN may also be a file: a document or a saved
    plan; of those, and of a plan that has not begun, it is a forecast. Values of secret parameters
    are left out.
    """

    EXAMPLES = ("report last -o report.html", "report maintenance.yaml -o before.html")
    ARGUMENTS = (
        argument("FILE|PLAN", f"file; or {PLAN_HELP}", dest="plan"),
        argument("-o --out FILE", "write to a file, not to the output"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from applier.report import content, page

        session = self.session
        plan, is_stored = arguments.planned(session, parsed_args.plan)
        if is_stored:
            made = content.stored(session, plan.uuid, now=now())
        else:
            made = content.report(session, plan, session.max_workers, now=now(), is_stored=False)
        self.write(page.render(made), parsed_args.out)
        return 0
