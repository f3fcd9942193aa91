# SPDX-License-Identifier: Apache-2.0
"""The verbs of ``actionplan-watcher``: those of ``actionplan``, on plans of Watcher."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from applier.assembly import now
from applier.cli import action_steering, graph, plan_verbs, simulate, why
from applier.cli.arguments import add_format, with_plan
from applier.cli.verb import Verb
from applier.errors import ActionNotFound, ApplierError
from applier.operations import claim
from applier.operations.lookup import find_action
from applier.run.this_process import user
from applier.watcher import resume
from planner.model import ActionPlan
from planner.states import ActionState

PLAN_HELP = "uuid, a unique beginning of one, or 'last'"


@contextmanager
def _named_here() -> Iterator[None]:
    """Replace ActionNotFound without candidates by an error that names actionplan-watcher show."""
    try:
        yield
    except ActionNotFound as reason:
        if reason.candidates:
            raise
        text = f"the plan has no action {reason.reference!r} (see: actionplan-watcher show)"
        raise ApplierError(text) from reason


class WatcherShow(plan_verbs.ShowPlan):
    """Show a plan of Watcher wave by wave, or the whole plan as JSON or YAML"""

    EXAMPLES = ("show last", "show last --all", "show 7f3a91c2", "show 7f3a91c2 -f json")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan and a format. There is no --node, which would need a cloud."""
        parser = with_plan(Verb.get_parser(self, prog_name))
        parser.add_argument("--all", action="store_true", help="show every action of a long plan")
        parser.set_defaults(node=None)
        add_format(parser, "message")
        return parser

    def about(self, plan: ActionPlan) -> Iterable[str]:
        """Return lines about the claimant of a plan; there are no approvals and no windows."""
        return claim.claimant_lines(self.session.store, plan, self.session.record, now())


class WatcherWhy(why.Why):
    """Explain when an action of Watcher starts, what it waits for, or why it did not run

    Before a run, the explanation is based on a forecast, during a run on the stored states.
    """

    EXAMPLES = ("why last 2f0c4711", "why last 2f0c4711 --set max_workers=8")

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Explain one action; raises ApplierError for one that is not in the plan."""
        with _named_here():
            return super().take_action(parsed_args)


class WatcherGraph(graph.Graph):
    """Draw a plan of Watcher as svg, dot or mermaid, or its timeline

    With --state, --node or --task, only the actions that match all of them are drawn, with the
    order between them. An RE may match any part of a name; use '^' and '$' to match the whole name.
    A timeline is svg, too: when each action ran or is expected to, and why it waited.
    """

    EXAMPLES = (
        "graph last -f svg --out plan.svg",
        "graph last -f svg --state FAILED --state CANCELLED --out failed.svg",
        "graph last -f timeline --out timeline.svg",
        "graph last -f timeline --lanes type --out types.svg",
        "graph last -f dot --node '^compute-4$' | dot -Tpdf -o compute-4.pdf",
        "graph 7f3a91c2 -f mermaid",
    )


class WatcherSimulate(simulate.Simulate):
    """Predict when actions of a plan of Watcher start, how long it takes, and what determines that

    With several values for max_workers (1..8, or 2,4,8), each has a row. The knee is marked: the
    first row within 5 % of the best.
    """

    EXAMPLES = (
        "simulate last",
        "simulate last --set max_workers=8",
        "simulate last --set max_workers=1..8",
        "simulate last -f json",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the arguments: a plan, and how many workers."""
        parser = Verb.get_parser(self, prog_name)
        parser.add_argument("file", metavar="PLAN", help=PLAN_HELP)
        parser.add_argument(
            "--set",
            metavar="max_workers=N",
            action="append",
            default=[],
            help="number of actions that run at once",
        )
        parser.add_argument("--all", action="store_true", help="show every action of a long plan")
        add_format(parser)
        # A plan of Watcher is planned already, and is no deployment.
        parser.set_defaults(planner=None, check_types=False)
        parser.set_defaults(
            node=None, task=None, fetch_deps=False, changed_since=None, strict=False
        )
        parser.set_defaults(split_by_window=False, inject=None, times=None, seed=None)
        return parser


class WatcherActionSet(action_steering.ActionSet):
    """Set the state of an action in doubt, or of a failed one finished by hand

    Possible only while nobody runs the plan. To continue the plan: actionplan-watcher resume PLAN.
    """

    EXAMPLES = (
        "action set last 2f0c4711 --state succeeded --reason 'looked: it is on compute-4'",
        "action set last 2f0c4711 --state failed --reason 'looked: it never moved'",
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Store the new state of the action."""
        plan = self.session.plan(parsed_args.plan)
        with _named_here():
            action = find_action(plan, parsed_args.action)
        from applier.watcher import settling

        new = ActionState(parsed_args.state.upper())
        message = f"set by {user()}: {parsed_args.reason}"
        settling.settle(plan.uuid, action.uuid, new, now=now(), message=message)
        self.say(f"Plan {plan.uuid[:8]}: {action.label} is {new}.")
        self.say(f"Continue the plan: actionplan-watcher resume {plan.uuid[:8]}")
        return 0


class WatcherResume(resume.ResumeWatcherPlan):
    """Let a plan go on whose applier has died, or that ended without doing all of its work

    What had begun is verified first. What SUCCEEDED does not run again.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Load Watcher's configuration, and resume the plan that the argument refers to, if any."""
        program: Any = self.app
        program.session.open()
        if parsed_args.plan:
            parsed_args.plan = program.session.store.find_plan(parsed_args.plan)
        return super().take_action(parsed_args)
